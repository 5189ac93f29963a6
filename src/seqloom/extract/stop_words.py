"""The small words that little of what a text is about, in English and in Chinese."""

from __future__ import annotations

ENGLISH = frozenset(
    "a about above after again against all almost alone along already also although always am "
    "among an and another any anybody anyone anything are aren around as at away back be became "
    "because become been before behind being below between both but by came can cannot could "
    "couldn did didn do does doesn doing don done down during each either else enough even ever "
    "every everyone everything few first for former from further get gets getting give given go "
    "goes going gone got had hadn has hasn have haven having he her here hers herself him "
    "himself his how however i if in indeed instead into is isn it its itself just keep last "
    "least less let like ll made make makes making many may maybe me might mine more most "
    "much must my myself near neither never next no nobody none nor not nothing now of off "
    "often on once one only onto or other others our ours ourselves out over own per perhaps put "
    "quite rather re really s same see seem seemed seems several shall she should "
    "shouldn since so some somebody someone something sometimes still such t take than that the "
    "their theirs them themselves then there therefore these they thing things this those though "
    "three through thus to together too toward towards two under until up upon us use used using "
    "ve very via was wasn way we well went were weren what whatever when where whether which "
    "while who whole whom whose why will with within without would wouldn yet you your yours "
    "yourself yourselves".split()
)

CHINESE = frozenset(
    "的 了 和 是 就 都 而 及 与 着 或 一个 没有 我们 你们 他们 她们 它们 我 你 他 她 它 自己 这 "
    "那 这个 那个 这些 那些 这样 那样 这里 那里 这种 那种 之 以 于 为 为了 从 到 在 向 往 由 "
    "由于 对 对于 关于 把 被 将 让 给 跟 同 比 按 按照 根据 通过 经过 随着 除了 因为 因此 因而 "
    "所以 如果 要是 虽然 但 但是 然而 可是 不过 而且 并 并且 并不 以及 或者 还是 还 也 又 再 才 "
    "只 只是 只有 就是 都是 不 不是 不能 不会 没 无 非 很 太 更 更加 最 非常 十分 已 已经 曾 "
    "曾经 正 正在 将要 要 会 能 能够 可 可以 应 应该 应当 必须 需要 得 地 所 等 等等 其 其中 "
    "其他 其它 各 各种 每 每个 某 某些 几 多 多少 一 一些 一种 一样 一直 一定 二 两 三 个 些 种 "
    "次 位 名 件 上 下 中 里 内 外 前 后 间 时 时候 之间 之后 之前 以后 以前 以来 以上 以下 什么 "
    "怎么 怎样 如何 为什么 谁 哪 哪个 哪里 哪些 吗 呢 吧 啊 呀 哦 嗯 哈 有 有的 有些 说 道 来 去 "
    "出 过 起 起来 好 大 小 像 似的 一般 则 即 若 虽 且 却 便 使 使得 令 此 此外 另 另外 同时 "
    "然后 于是 总之 例如 比如 如 据 至 至于 甚至 尤其 特别 方面 进行 认为 表示 指出 本 该 "
    "年 月 日".split()
)
