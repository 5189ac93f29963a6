"""English words that are written with a full stop of their own, all in lower case."""

# A name follows: the stop never ends a sentence.
TITLES = frozenset(
    "mr mrs ms dr prof rev hon gen col maj capt lt sgt cmdr adm sen rep gov pres st messrs "
    "mme mlle ft mt".split()
)
# The stop may end a sentence too, so a splitter looks at what follows.
OTHERS = frozenset(
    "jr sr esq inc ltd co corp bros assn dept univ dist etc vs fig figs nos vol vols pp eds cf "
    "approx ave blvd rd jan feb apr jun jul aug sep sept oct nov dec tue tues thu thur "
    "thurs fri".split()
)
# Common words in lower case, abbreviations only with a capital.
CAPITALIZED = frozenset("Co Col Gen Fig Rep Gov Sen Hon".split())
ANY_CASE = (TITLES | OTHERS) - {word.lower() for word in CAPITALIZED}
