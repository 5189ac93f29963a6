// Texts to begin with, in both languages.

export const ARTICLES = [
  {
    lang: "en",
    label: "Tides",
    text: `The sea rises and falls twice a day because the Moon pulls on it. The side of the Earth that faces the Moon is pulled a little harder than the centre, and the centre a little harder than the far side, so the water is stretched into two bulges. As the Earth turns, every coast passes through both of them.

The Sun pulls as well, but from much farther away. When Sun and Moon stand in one line, their pulls add up and the tide runs higher; sailors call it a spring tide. When they stand at a right angle, the pulls work against each other and the tide is weak.

Coasts change the picture. In the open ocean the water rises by less than a metre. In a narrow bay it has nowhere to go, and it piles up. The Bay of Fundy in Canada sees sixteen metres between low and high water, the largest tide on Earth.

Tides have been predicted for centuries. In 1872 William Thomson built a machine of pulleys that added up the motions of Sun and Moon and drew the tide of a year in a few hours. Ports still print such tables, although a computer now does the sums. Power stations have begun to use the tide too, because unlike the wind it can be known years ahead.`,
  },
  {
    lang: "zh",
    label: "潮汐",
    text: `海水每天涨落两次，主要是因为月球的引力。地球朝向月球的一面受到的引力比地心略大，背向月球的一面受到的引力比地心略小，于是海水被拉成两个隆起。地球自转时，每一段海岸都会先后经过这两个隆起。

太阳也有引力，只是距离远得多。太阳和月球排成一条直线时，两者的引力叠加，潮水涨得更高，航海者称之为大潮。太阳和月球成直角时，引力互相抵消，潮水就比较弱。

海岸的形状会改变潮汐的大小。在开阔的大洋里，海水涨落不到一米。在狭窄的海湾里，海水无处可去，只能越堆越高。加拿大的芬迪湾高低潮之间相差十六米，是地球上最大的潮差。

人们预报潮汐已有几百年的历史。一八七二年，威廉·汤姆森造出一台由滑轮组成的机器，把太阳和月球的运动相加，几个小时就能画出一年的潮汐。今天各港口仍然印制潮汐表，只是计算由计算机完成。潮汐电站也开始利用潮水发电，因为潮汐不像风，可以提前许多年预知。`,
  },
];

export const QUESTIONS = [
  { lang: "en", label: "Fundy", question: "How large is the tide in the Bay of Fundy?" },
  { lang: "en", label: "1872", question: "Who built a machine of pulleys?" },
  { lang: "zh", label: "芬迪湾", question: "芬迪湾高低潮之间相差多少？" },
];

export const BEGINNINGS = [
  { lang: "en", label: "Shall I compare", text: "Shall I compare thee to a" },
  { lang: "en", label: "Everyone has the right", text: "Everyone has the right to" },
  { lang: "en", label: "a blank", text: "Everyone has the ___ to freedom" },
  { lang: "zh", label: "人人有权", text: "人人有权" },
  { lang: "zh", label: "春眠", text: "春眠不觉" },
  { lang: "zh", label: "填空", text: "人人___自由" },
];

export const SENTENCES = [
  { lang: "en", label: "a name", text: "Nakamura" },
  { lang: "en", label: "a review", text: "a warm and funny film that never loses its way" },
  { lang: "zh", label: "一条评论", text: "房间很干净，服务员也很热情，下次还会再来。" },
];

export const RELATIONS = [
  { lang: "en", label: "cause", text: "The <e1>storm</e1> caused a <e2>flood</e2> in the valley." },
  { lang: "en", label: "part", text: "The <e1>engine</e1> of the <e2>car</e2> was replaced." },
  { lang: "zh", label: "因果", text: "<e1>暴雨</e1>引发了山谷里的<e2>洪水</e2>。" },
];

export const TAGGED = [
  { lang: "en", label: "a sentence", text: "Marie Curie was born in Warsaw and worked in Paris." },
  { lang: "en", label: "an order", text: "Show me the first flight from Boston to Denver on Monday." },
  { lang: "zh", label: "一句话", text: "鲁迅出生于浙江绍兴，后来在北京任教。" },
];

export const TRANSLATED = [
  { lang: "en", label: "English", text: "I like to drink tea in the morning.", model: "tatoeba-en-zh" },
  { lang: "zh", label: "中文", text: "我喜欢早上喝茶。", model: "tatoeba-zh-en" },
];

export const STEPPED = [
  { lang: "en", label: "long distance", text: "the keys that lay on the old table near the door are mine" },
  { lang: "zh", label: "长距离", text: "放在门边旧桌子上的那几把钥匙是我的" },
];

export const TABLE = `text,label
the plot is dull and the ending worse,negative
a warm and funny film,positive
I left before the end,negative
beautiful pictures and a fine cast,positive
not worth the ticket,negative
a quiet story told with great care,positive
the jokes are old and tired,negative
I would gladly see it again,positive
slow and far too long,negative
the best film of the year,positive
a waste of good actors,negative
charming from start to finish,positive
`;
