// Looking at a table before it is sent: its columns and first rows. The server reads it for good.

/** The first `most` records of a CSV (RFC 4180) or TSV text; the delimiter is told by the first line. */
export function firstRecords(text, most) {
  const line = text.slice(0, text.search(/\r?\n|$/));
  if (line.includes("\t")) {
    return text.split(/\r?\n/).filter(Boolean).slice(0, most).map((row) => row.split("\t"));
  }
  const records = [];
  let [record, value, quoted] = [[], "", false];
  for (let i = 0; i < text.length && records.length < most; i += 1) {
    const letter = text[i];
    if (quoted) {
      if (letter === '"' && text[i + 1] === '"') {
        value += '"';
        i += 1;
      } else if (letter === '"') quoted = false;
      else value += letter;
    } else if (letter === '"' && !value) quoted = true;
    else if (letter === ",") {
      record.push(value);
      value = "";
    } else if (letter === "\n") {
      record.push(value.replace(/\r$/, ""));
      if (record.some(Boolean)) records.push(record);
      [record, value] = [[], ""];
    } else value += letter;
  }
  if ((value || record.length) && records.length < most) records.push([...record, value]);
  return records;
}

/** How many records there are, more or less: lines that are not empty, without the header. */
export function countLines(text) {
  return Math.max(0, text.split(/\r?\n/).filter((line) => line.trim()).length - 1);
}
