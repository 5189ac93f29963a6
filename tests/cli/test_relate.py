"""Relations from the command line."""

from __future__ import annotations

import json

import pytest

from commands import call_command, start_command

ROWS = [
    ("the <e1>storm</e1> causes <e2>pain</e2>", "Cause-Effect(e1,e2)"),
    ("<e1>pain</e1> comes from the <e2>storm</e2>", "Cause-Effect(e2,e1)"),
    ("<e1>storm</e1> and <e2>fire</e2> again", "Other"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("relations")
    lines = [json.dumps({"clause": text, "kind": label}) for text, label in ROWS * 30]
    (place / "rows.jsonl").write_text("\n".join(lines) + "\n")
    result = call_command(
        *("train", "--task", "relate", "--arch", "att-blstm", "--train", place / "rows.jsonl"),
        *("--field", "text=clause", "--field", "label=kind", "--out", place / "model"),
        *("--set", "model.hidden_size=8", "--set", "model.embed_size=8"),
        *("--set", "training.epochs=12", "--set", "training.optimizer.rate=0.02"),
        *("--set", "training.optimizer.name=adam"),
        *("--set", "training.batch.batch_size=8", "--set", "training.device=cpu", "--json"),
    )
    assert result.returncode == 0, result.stderr
    metrics = {row["what"]: row["value"] for row in json.loads(result.stdout)}
    assert metrics["valid_macro_f1"] == 1
    return place


def test_each_line_has_its_relation(folder):
    text = "\n".join(line for line, _ in ROWS) + "\n\n"
    result = start_command("relate", folder / "model", "--json", "--explain", input=text)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["label"] for row in found] == [label for _, label in ROWS]
    assert (found[1]["first"], found[1]["second"]) == ("pain", "storm")
    assert found[0]["words"][1][0] == "<e1>"
    assert sum(weight for _, weight in found[0]["words"]) == pytest.approx(1, abs=1e-5)
    plain = call_command("relate", folder / "model", input=ROWS[0][0] + "\n").stdout
    assert plain.split("\t")[0] == ROWS[0][1]
    also = call_command("predict", folder / "model", "--json", input=ROWS[0][0] + "\n").stdout
    assert json.loads(also)["label"] == ROWS[0][1]


def test_the_official_report_is_printed(folder):
    (folder / "key.TXT").write_text(
        "".join(f'{i}\t"{text}"\n{label}\n\n' for i, (text, label) in enumerate(ROWS))
    )
    result = call_command("relate", folder / "model", "--report", folder / "key.TXT")
    assert result.stdout.endswith("into account: macro-averaged F1 = 100.00% >>>\n")
    result = call_command(
        *("evaluate", folder / "model", folder / "rows.jsonl", "--json"),
        *("--field", "text=clause", "--field", "label=kind"),
    )
    found = {row["what"]: row["value"] for row in json.loads(result.stdout)}
    assert (found["macro_f1"], found["examples"]) == (1, 90)
    result = call_command(
        *("relate", folder / "model", "--report", folder / "rows.jsonl", "--json"),
        *("--field", "text=clause", "--field", "label=kind"),
    )
    assert json.loads(result.stdout)["f1/Cause-Effect"] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--field", "text=clause"], "--field is for --report"),
        (["lines.txt", "--report", "key.TXT"], "measures its own data alone, got lines.txt"),
        (["--explain", "--report", "key.TXT"], "measures its own data alone, got --explain"),
    ],
)
def test_what_would_be_passed_over_is_refused(folder, given, message):
    result = call_command("relate", folder / "model", *given)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_a_line_without_markers_is_named(folder):
    result = call_command("relate", folder / "model", input="<e1>a</e1> <e2>b</e2>\nno markers\n")
    assert result.returncode == 1
    assert "-:2: must have each of <e1> </e1> <e2> </e2> once, got none" in result.stderr
    result = call_command("relate", folder / "model", input="\n")
    assert "at least one sentence, got none" in result.stderr
