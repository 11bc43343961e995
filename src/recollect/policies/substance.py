"""Whether an English statement has enough substance to be kept, by signs that do not depend on its phrasing.

The rules of `sentence_rules` know phrases. People also say lasting things in fragments, without a subject, without
capitals, or with a verb that no rule has. This module counts general signs instead: of whom (the speaker, a relative, a
name), of what (home, work, health, money, dates), for how long; and against: talk about the talk, strangers, moods,
stories of the day, suppositions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from recollect.text.late_pattern import LatePattern

_SELF = LatePattern(r"\b(?:i|i'm|im|i've|ive|i'll|i'd|my|mine|me|we|we're|we've|we'll|our|ours|us|myself)\b", re.I)
_PERSON = LatePattern(
    r"\b(?:wife|husband|hubby|hubs|spouse|fianc[eé]e?|partner|girlfriend|boyfriend|gf|bf|ex|kids?|child(?:ren)?|baby|"
    r"twins?|(?:grand|step|half-?)?(?:son|daughter|mother|father|sister|brother)s?(?:-in-law)?|boys?|girls?|teenagers?|"
    r"mum|mom|mam|mama|mummy|mommy|dad|daddy|papa|gran|granny|grandma|grandpa|grandad|nan|nana|grandparents|parents|"
    r"aunt(?:ie)?|uncle|niece|nephew|cousin|in-laws|family|friend|mate|colleague|co-?worker|boss|manager|supervisor|"
    r"chef|foreman|landlord|landlady|tenant|neighbou?r|flatmate|roommate|housemate|teacher|tutor|coach|trainer|"
    r"doctor|dr|gp|dentist|therapist|physio|nurse|vet|midwife|surgeon|accountant|lawyer|solicitor|client|customer|"
    r"apprentice|intern|trainee|maid of honou?r|best man|bridesmaid|godson|goddaughter|dog|puppy|cat|kitten|horse|"
    r"pony|rabbit|hamster|parrot|tortoise|hens?|chickens|mil|fil|sil|bil)s?(?:'s)?\b",
    re.I,
)
_LIFE = LatePattern(
    r"\b(?:home|address|flat|house|apartment|street|str|road|postcode|zip|rent(?:ed|ing|s)?|lease|leasing|mortgage|"
    r"landline|phone|"
    r"e-?mail|cars?|van|truck|bike|motorbike|plates?|garage|garden|allotment|job|work(?:s|ing)?|shifts?|nights|trade|"
    r"school|uni|university|college|degree|b\.?sc|m\.?sc|phd|thesis|dissertation|exams?|class(?:es)?|course|term|"
    r"semester|"
    r"grade|major|diploma|certificate|licen[cs]e|visa|passport|permit|insurance|tax(?:es)?|pension|salary|wages?|"
    r"budget|savings|loan|debt|deposit|invoices?|fees?|quote|paycheck|bank|iban|account|meds?|medication|"
    r"tablets|pills|dose|mg|insulin|inhaler|allerg\w+|intoleran\w+|asthma|diabet\w+|blood pressure|cholesterol|"
    r"thyroid|migraines?|eczema|arthritis|gout|epilep\w+|adhd|dyslexi\w+|depression|anxiety|celiac|coeliac|gluten|"
    r"lactose|"
    r"veggie|vegan|vegetarian|halal|kosher|pregnan\w+|hips?|knees?|shoulder|surgery|operation|operated|op|scan|mri|"
    r"therapy|physio|diagnos\w+|appointment|check-?up|birthday|bday|born|anniversary|wedding|funeral|christening|"
    r"bar mitzvah|"
    r"trip|flight|holidays?|vacation|leave|easter|christmas|xmas|eid|diwali|ramadan|hanukkah|deadline|due|"
    r"meeting|interview|"
    r"audit|inspection|contract|club|choir|band|league|gym|marathon|training|lessons|guitar|piano|violin|cello|drums|"
    r"hobby|hobbies|team|project|release|repo|server|database|staging|production|prod|backend|frontend|branch|"
    r"workshop|shop|"
    r"office|clinic|ward|practice|factory|farm|hall|venue|church|caterer|guests|dress|"
    r"sizes?|shoes?|height|weight|glasses|"
    r"contact lenses|nationality|citizen|fluent|native|language|dialect|divorced|married|single|widowed|engaged|"
    r"retired|unemployed|adopted|favou?rite|nickname|surname|pronouns|dinner|lunch|brunch|cinema|theat(?:re|er)|"
    r"tickets?|"
    r"gig|festival|yoga|pilates|swimming|football|tennis|running|book club|defen[cs]e|delivery|movers|plumber|"
    r"electrician|visit|party|barbecue|bbq|ceremony|conference|demo|camping|kitchen|bathroom|roof|boiler|tap|washing "
    r"machine|dishwasher|fridge|heating|greenhouse|shed|fence|planning permission|jobs|full[- ]time|part[- ]time|"
    r"(?:first|second|third|fourth|final) year|app|site|website|commits?|reviews|errors|logs|data|pipeline|ci|"
    r"builds?|indents?|"
    r"doors?|keys?|codes?|gate|notary|chair|treasurer|secretary|trustees?|committee|captain|smoker|subscri\w+|"
    r"landlines?|hens|library|plan)\b",
    re.I,
)
_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_DATE = LatePattern(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTHS}\b|\b{_MONTHS} \d{{1,4}}|\b(?:in|since|until|till?|by|of|from|"
    rf"end of|"
    rf"early|mid|late|next|last) {_MONTHS}\b|\b(?:19|20)\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}\b|\b\d{{1,2}}:\d\d\b|"
    rf"\b\d+ ?[ap]m\b|"
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:mon|tue|wed|thu|fri|sat|sun|mo|tu|th|fr|sa|su)\b(?!\.)|"
    r"\bthe \d{1,2}(?:st|nd|rd|th)\b|\b(?:tomorrow|tmrw|tmr|2moro)\b|\bnext (?:week|month|year|spring|summer|autumn|"
    r"fall|winter)\b|\b\d{1,2} ?(?:-|–|to) ?\d{1,2}\b",
    re.I,
)
_AMOUNT = LatePattern(
    r"\d[\d.,]* ?(?:€|eur\b|euros?\b|£|\$|quid\b|dollars\b|pounds\b|k\b|%|kg\b|lbs?\b|stone\b|cm\b|m\b|km\b|miles\b|"
    r"m2\b|sqm\b|"
    r"mg\b|ml\b|mcg\b|units\b|y/?o\b|yo\b|yrs?\b|years?\b|months?\b|weeks?\b|days?\b|hours?\b|hrs?\b|h\b|people\b|"
    r"guests\b|"
    r"lines?\b|words\b|tb\b|gb\b|kids\b)|[€£$]\s?\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve|"
    r"fifteen|twenty|thirty|forty|fifty|sixty|hundred) (?!of\b|things?\b|more\b|times\b|minutes?\b|seconds?\b)"
    r"[a-z]{3,}",
    re.I,
)
_NUMBER = LatePattern(
    r"\d|\b(?:thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|(?:twenty|thirty|forty|fifty|sixty|seventy|"
    r"eighty|ninety)(?:[ -]\w+)?|hundred|thousand)\b",
    re.I,
)
_NAMED = LatePattern(
    r"(?:(?<=[a-z0-9,;:)(=/–-] )|(?<=\())(?!I\b|[A-Z]{5,}\b|I'|OK\b|TV\b|AI\b|LOL\b|OMG\b|God\b|Jesus\b|(?:Mon|Tues|"
    r"Wednes|Thurs|Fri|Satur|"
    r"Sun)days?\b|(?:Jan|Febr)uary|March|April|May\b|June|July|August|\w+ember\b|October)[^\W\d_a-z][\w'-]+"
)
_OWN = LatePattern(
    rf"\b(?:my|our)(?: [\w'-]+)? (?:{_PERSON.pattern}|{_LIFE.pattern})|\b\w+(?:'s| is|,| \() ?(?:my|our)"
    rf" {_PERSON.pattern}",
    re.I,
)
_LASTS = LatePattern(
    r"\b(?:always|never|usually|normally|every|each|since|from now|no longer|still|anytime|any ?more|used to|"
    r"by default|permanent(?:ly)?|"
    r"daily|weekly|monthly|yearly|twice a|once a|per (?:week|month|day|year)|(?:mon|tues|wednes|thurs|fri|satur|"
    r"sun)days|"
    r"weekends|mornings|evenings|nights|for life|instead of|so far back|moved|sold|bought|quit|hired|fired|promoted|"
    r"accepted|confirmed|booked|cancelled|canceled|signed|agreed|decided|graduated|passed away|died|broke up|"
    r"switched|replaced|gone|changed|allergic|lent|borrowed|owes?|started|passed|qualified|given up|"
    r"gave up|cut off|completed|official|permanent|made me|these days|at last|for good|grown out|went live|merged|"
    r"turned down|put me on|broken|leaks?|missing|for sale|own place|scared of|afraid of|terrified of|hooked on|"
    r"fan of)\b",
    re.I,
)
_PRESENT_HABIT = LatePattern(
    r"\b(?:i|we) (?!(?:am|do|did|was|were|had|have|think|know|mean|guess|wonder|hope|see|feel|said|told|asked|can|"
    r"could|"
    r"would|will|should|shall|might|may|must|just|thought|suppose|bet|swear|agree|understand|believe|remember|forgot|"
    r"forget|wish|say|hear|heard|saw|got|went|came|tried|looked|appreciate|notice|noticed|felt|laughed|cried|want|like|"
    r"love|need|get|go|come|try|look|imagine|doubt|promise|apologi[sz]e|admit|give|found|find|also|really|still|all|"
    r"both|stood|sat|ran|ate|drank|slept|woke|fell|brought|caught|kept|left|lost|met|paid|sent|sold|spent|took|wore|"
    r"won|wrote|"
    r"only|even|already|not|never|don'?t|can'?t|note|put|did|let)\b)(?![a-z]+(?:ed|ly)\b)[a-z]{3,}\b",
    re.I,
)
_HAS_GOT = LatePattern(
    r"\b(?:i|we) (?:have|own|keep|drive|play|run) (?:an?|two|three|four|five|\d+|no) |"
    r"\b(?:i|we)(?:'ve| have)? got (?:an?|the|two|three|four|five|\d+|no) |\b(?:i'?m|we'?re) with [A-Z]|\bmy name|"
    r"\b(?:i|we) (?:get up|go|come|get|eat|need) [^.]*\b(?:every|at|each|on \w+days|times)\b",
    re.I,
)
_ELIDED = LatePattern(
    r"^(?:(?:and|so|but|oh|ok|also|btw),? )*(?:(?!need|speed|seed|indeed|red\b|bed\b)[a-z]{2,}ed|got|had|gave|took|"
    r"sold|bought|"
    r"left|quit|lost|won|met|made|lent|been|off|between|non|don'?t (?:have|own|like|eat|drink|speak)|started|"
    r"waiting)\b(?! (?:it|that|this|you)\b)",
    re.I,
)
"""Begins with a verb: "signed at the notary" is said of oneself."""
_OF_ONESELF_FIRST = LatePattern(
    r"^(?:(?:and|so|but|oh|ok|also|btw|well|anyway),? )*(?:i|i'?m|i'?ve|we|we'?re|we'?ve|my|our)\b(?!.*(?:[a-z]ed|"
    r"n't)\b)",
    re.I,
)
_CONTACT = LatePattern(r"\b[\w.+-]+@[\w-]+\.[\w.]+|(?<![\w.])\+?0?\d[\d ()/-]{6,}\d\b")
_ADDRESSED = LatePattern(r"\b(?:you|your|yours|u|ur|you're|you've|you'll)\b", re.I)
_TALK = LatePattern(
    r"^(?:(?:and|so|but|oh|well|ok|yes|yeah|no|ha|haha|lol|also|because|cos|like),? )*(?:(?:this|that|these|those)"
    r"(?: one)?(?= (?:is|was|are|"
    r"were|from|for|here|looks?|sounds?|will|would|all|makes?)\b|'|,|$)|it|there|what|how|which|who|why|if|maybe|"
    r"perhaps|not (?:really|that|sure|bad|yet|too|so|much)|just|same|people|everyone|somebody|someone|nobody|at least)"
    r"(?:'s|'re|'ll)?\b",
    re.I,
)
_MOOD = LatePattern(
    r"\b(?:funny|lovely|nice|awful|horrible|weird|stupid|hilarious|gorgeous|amazing|brilliant|ridiculous|annoying|"
    r"tired|"
    r"knackered|exhausted|starving|hungry|bored|lol|haha|lmao|omg|ugh|wow|honestly|apparently|literally|swear|bloody|"
    r"wtf|sigh|rain(?:s|ing)?|snow(?:s|ing)?|weather|sunny|traffic|queue|forg[eo]t(?:s|ten|ting)?|rip|classic|"
    r"embarrassing|joke|kidding|like a|like an|as if)\b",
    re.I,
)
_SUPPOSED = LatePattern(
    r"\b(?:(?<!even )(?<!as )if|would|wouldn't|could|should|imagine|might as well|suppose|wish|what if)\b|'d\b", re.I
)
_ORDER = LatePattern(
    r"^(?:(?:and|so|but|ok|now|then|also|please|pls),? )*(?!(?:in|on|at|from|with|and|for|to|of|by|not|no|all|only|"
    r"just|"
    r"also|now|since|until|till|as|when|after|before|got|had|has|have|lost|was|is|are|were|went|bought|sold|left|did|"
    r"took|made|saw|met|quit|broke|won|told|both|about|into|near|off|over|under|than|because|own|need|hate|love|like|"
    r"prefer|i|we|he|she|they)\b)(?![a-z]+(?:ed|ing|s|ic)\b)[a-z]{3,} (?:a|an|the|it|me|this|that|these|those|my|him|"
    r"her|them)\b|"
    r"\b(?:please|pls|plz)[.!]*$|^(?:don'?t|do not) ",
    re.I,
)
_OF_THE_DAY = LatePattern(
    r"\b(?:today|tonight|this (?:morning|afternoon|evening)|just now|right now|at the moment|yesterday|last night|"
    r"earlier|a minute ago|for now|in a (?:sec|minute|bit)|finally|again|nearly|almost|up since|"
    r"minutes?|mins|just (?:sat|got|woke|had|came|saw)|for the first time|(?:i'?m|we'?re) (?:\w+ )?(?:standing|"
    r"sitting|walking|looking|thinking|trying|lying|nodding|crying|"
    r"laughing|kidding)|all day|all night)\b",
    re.I,
)
_STRANGERS = LatePattern(
    r"\b(?:(?:the|a|some|an old|one|this|that|another) (?:\w+ )?(?:man|woman|guy|lady|bloke|girl|boy|passenger|"
    r"customer|"
    r"driver|stranger|"
    r"kid|nurse|cop|policeman|neighbou?r|patient|client|dog|cat|bird)|they|he|she|everyone|everybody|people)\b"
    r".{0,20}\b(?!need|bed|red)(?:[a-z]+ed|sang|said|told|came|went|ran|fell|shouted|wore|gave|took|looked|threw|"
    r"thinks?|says?|"
    r"asks?|laughs?)\b",
    re.I,
)
_CLAUSE = LatePattern(r", (?:so|but|if|because|and|which|she|he|they|we|i)\b| (?:so|because|in case) ", re.I)
_NEGATED_STATE = LatePattern(r"\b(?:did ?n[o']t|didn't|was ?n[o']t|wasn't|haven't|hasn't)\b", re.I)
_ENOUGH = 2
_FEWEST = 3
"""Words of a statement that stands alone."""


_PHRASES = LatePattern(
    r"\b(?:blood pressure|bar mitzvah|contact lenses|book club|washing machine|planning permission|full[- ]time|"
    r"part[- ]time|(?:first|second|third|fourth|final) year)\b",
    re.I,
)
_WORD = LatePattern(r"[^\W_]+(?:[-.][^\W_]+)*")


@lru_cache(maxsize=4096)
def _is_person(word: str) -> bool:
    return _PERSON.fullmatch(word) is not None or ("-" in word and _PERSON.search(word) is not None)


@lru_cache(maxsize=4096)
def _is_of_life(word: str) -> bool:
    return _LIFE.fullmatch(word) is not None or ("-" in word and _LIFE.search(word) is not None)


@lru_cache(maxsize=1024)
def _people_and_things(sentence: str) -> tuple[int, int]:
    """How many relations, and how many things of a life, a sentence names. Word by word, as words recur."""
    words = set(_WORD.findall(sentence.lower()))
    return sum(map(_is_person, words)), sum(map(_is_of_life, words)) + (_PHRASES.search(sentence) is not None)


def substance(sentence: str) -> int:
    """How many signs more speak for a lasting statement than against it."""
    return _for(sentence) - _against(sentence)


def is_substantial(sentence: str) -> bool:
    if is_impersonal(sentence):
        return False
    enough = _ENOUGH + (_SELF.search(sentence) is not None and _OF_ONESELF_FIRST.search(sentence) is None)
    return len(sentence.split()) >= _FEWEST and substance(sentence) >= enough


def is_detail(sentence: str) -> bool:
    """Whether a fragment tells when, how much, who or of what."""
    named = any(_people_and_things(sentence)) or any(
        sign.search(sentence) for sign in (_DATE, _AMOUNT, _NUMBER, _LASTS)
    )
    return named and not _against(sentence)


@lru_cache(maxsize=1024)
def _for(sentence: str) -> int:
    person, life = _people_and_things(sentence)
    when = _DATE.search(sentence) is not None
    measure = _AMOUNT.search(sentence) is not None or (not when and _NUMBER.search(sentence) is not None)
    return (
        (_SELF.search(sentence) is not None)
        + (_ELIDED.search(sentence) is not None)
        + (_HAS_GOT.search(sentence) is not None)
        + 2 * (_CONTACT.search(sentence) is not None)
        + (_OWN.search(sentence) is not None)
        + min(person, 2)
        + min(life, 2)
        + when
        + measure
        + (_NAMED.search(sentence) is not None)
        + (_LASTS.search(sentence) is not None)
        + (_PRESENT_HABIT.search(sentence) is not None)
    )


def is_impersonal(sentence: str) -> bool:
    """Whether nothing tells that it is about the speaker, theirs, or how something stays."""
    return not (any(_people_and_things(sentence)) or any(sign.search(sentence) for sign in (_SELF, _LASTS, _CONTACT)))


@lru_cache(maxsize=1024)
def _against(sentence: str) -> int:
    first = _CLAUSE.split(sentence, maxsplit=1)[0]
    if len(first.split()) < _FEWEST:
        first = sentence
    return (
        2 * (_ADDRESSED.search(first) is not None)
        + (_TALK.search(sentence) is not None)
        + (_MOOD.search(sentence) is not None)
        + 2 * (_SUPPOSED.search(first) is not None)
        + (_OF_THE_DAY.search(sentence) is not None)
        + 2 * (_STRANGERS.search(sentence) is not None)
        + (_NEGATED_STATE.search(sentence) is not None)
        + 2 * (_ORDER.search(sentence) is not None and _ELIDED.search(sentence) is None)
        + sentence.endswith("!")
    )
