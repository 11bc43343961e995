"""English phrases that tell decisions, preferences, facts, tasks and failures from talk. Patterns, and nothing else."""

from __future__ import annotations

VITAL = (
    r"\b(?:allerg\w+|intoleran\w+|anaphyla\w+|diabet\w+|asthma\w*|epilep\w+|pregnan\w+|coeliac|"
    r"celiac|medication|insulin|"
    r"emergency contact)\b"
)
OVERRULES = (
    rf"{VITAL}|\b(?:vegan|vegetarian|(?:can't|cannot|can not|never) eat|died|passed away|"
    rf"got (?:fired|engaged|married|"
    r"divorced|laid off|promoted|diagnosed))\b"
)
"""Is kept whatever is around it: a mood, a request, a question that tells it."""
TOLD = r"\b(?:i am|i'm|i have|i've|i might|i may|i could|i can't|i cannot|i got|my|our|he|she|is|has)\b"
NAME = (
    r"(?!(?:You|It|He|She|They|We|I|This|That|These|Those|There|What|Who|How|If|So|And|But|The|My|Our|Your|"
    r"His|Her|Their|"
    r"No|Yes|Not|Ok|Okay|Well|Then|Also|Just|Now|Oh|When|Where|Why|Please|"
    r"Thanks)\b)[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*){0,2}"
)
OWN = r"(?:my|our)(?: [\w'’-]+){1,5}?"
WHO = rf"(?:I|we|{OWN}|{NAME}|(?:the|this|that|these|those|his|her|their|he|she|they|it)(?: [\w'’/-]+){{0,5}}?)"
ADVERB = (
    r"(?:(?:really|also|always|usually|often|actually|now|just|currently|still|already|both|never|recently|"
    r"finally|mostly|mainly|generally|only|absolutely|definitely|much|personally|kind of|sort of|normally|"
    r"typically|no longer) )*"
)

REQUEST = (
    r"^(?:(?:and|so|but|also|ok(?:ay)?|hey|hi|well|then|now|great|thanks|thank you|perfect|yes|no|sure|"
    r"alright|right|first|next|good|cool|actually)[,.!:;]? )*"
    r"(?:please |kindly |just |could you |can you |would you |will you |i(?:'d| would) like you to |"
    r"i want you to |i need you to |help me (?:to )?|let's |let us |let me |go ahead|try (?:to )?|)"
    r"(?:write|fix|explain|give|show|tell|make|create|generate|translate|summari[sz]e|list|find|search|look|"
    r"check|compare|describe|draft|rewrite|rephrase|suggest|recommend|help|add|remove|delete|change|update|"
    r"convert|calculate|compute|plan|think|see|continue|start|stop|open|read|run|send|book|order|print|format|"
    r"shorten|expand|proofread|edit|review|analy[sz]e|debug|implement|refactor|test|walk|go|take|put|set|pick|"
    r"guess|imagine|assume|consider|say|repeat|wait|hold|do|provide|include|keep it|be|use it|come|get|turn|"
    r"compose|regenerate|work it|move on|brainstorm|outline|name(?!'s)|sort|rank|answer|ask)\b"
)
LASTS = (
    r"\b(?:always|never|forever|from now(?: on)?|in future|in the future|every time|each time|whenever|"
    r"going forward|by default|"
    r"any ?more|from here on|in general|that'?s how|"
    r"when (?:i|you|we) (?!get\b|got\b|was\b|am\b|can\b)|if i ever|ever again|every answer|every \w+ you)\b"
)
INSTRUCTS = rf"(?:{LASTS}|\b(?:remember|for me|i prefer|not any)\b)"
"""Makes a wish that lasts out of a request."""
REMEMBER = (
    r"^(?:(?:and|so|ok(?:ay)?|hey|also|oh)[,!]? )*(?:please |just |can you |could you |i want you to |"
    r"i need you to |(?:would|will) you (?:please |kindly )?)?"
    r"(?:remember|note|keep in mind|don'?t forget|make a note|take a note|bear in mind|for the record|fyi|"
    r"for your information|heads up|important)\b[,:]?"
)
IDLE = (
    r"^(?:(?:oh|ah|well|hmm+|hm|wow|ok(?:ay)?|yes|yeah|yep|no|nope|haha\w*|lol|great|thanks|thank you|sorry|"
    r"so|and|but|right|sure|alright|cool|nice|perfect)[,.!]? )*"
    r"(?:(?:that|this|it|you|these|those)(?:'s|'re|’s|’re| is| are| was| were| sounds?| looks?| seems?|"
    r" makes?| works?| helps?| will| would| all| really)\b"
    r"|i (?:see|can't believe|'d love|would love|think so|guess|agree|understand|know|wonder|hope|mean|"
    r"don't know|do not know|don't think|"
    r"thought|suppose|doubt|bet|was wondering|was thinking|was just|am not sure|'m not sure|appreciate|"
    r"can imagine|feel|felt|could|might|may|would love to hear|would like to (?:know|hear|ask|see|understand|"
    r"learn)|want to (?:know|ask|see|understand|learn (?:about|how|more))|need (?:help|advice|some|your|a hand|ideas)|"
    r"have a (?:question|quick|favor|favour)|got it|got to go|have to (?:go|run)|gotta)\b"
    r"|i['’](?:ll (?:think|let you|try|see|get back|take|check|do that|go with that|give it)|m (?:good|fine|"
    r"ok|okay|great|back|here|ready|sorry|glad|happy|sure|not sure|wondering|curious|thinking|confused|"
    r"lost|stuck|done|tired|bored|excited|looking forward|doing|afraid|sad|busy|hungry|home|off|"
    r"on my way|trying to|asking|all ears|kidding|joking)|d (?:love to hear|like to (?:know|hear|ask|see|"
    r"understand|learn))|ve (?:been wondering|been thinking|got to go|got a question))\b"
    r"|i am (?:good|fine|ok|okay|great|back|here|ready|sorry|glad|happy|sure|not sure|wondering|curious|"
    r"thinking|confused|lost|stuck|tired|bored|excited|looking forward)\b"
    r"|what a\b|how (?:nice|cool|funny|weird|about)|if (?:i|we|you|it|there)\b|maybe\b|perhaps\b|imagine\b|"
    r"there you go|never ?mind|no (?:worries|problem)|good (?:idea|point|question|morning|night|evening|luck)|"
    r"see you|talk to you|have a (?:good|nice|great)|same here|me (?:too|neither)|not (?:really|yet|sure|"
    r"at all)|exactly|of course|makes sense|let'?s see|let me (?:think|see|know)|hello|hi\b|hey\b|bye|thanks|"
    r"thank you|cheers|welcome|you(?:'re| are) (?:right|welcome|amazing|the best))"
)
"""Says something about the talk itself, or about a passing mood."""

OUTPUT = (
    r"\b(?:answers?|repl(?:y|ies)|summar(?:y|ies)|lists?|lines|points|words|bullets?|spelling|format|sign|quote|skip|"
    r"explain|details|tl;?dr|tone|emojis?|sentences|paragraphs|headings|recipes?|mails?|messages?|units|dates)\b"
)
"""Words for what the assistant writes."""
PREFERENCE = {
    "likes or dislikes": (
        rf"\b(?:{WHO}|i|who) {ADVERB}(?:prefers?|likes?|loves?|enjoys?|hates?|dislikes?|adores?|favou?rs?|"
        rf"detests?|can'?t stand|cannot stand|don'?t (?:really |much )?(?:like|enjoy|care for|want|eat|drink|do)|"
        rf"doesn'?t (?:like|enjoy|care for|want|eat|drink)|do not (?:like|enjoy|want|eat|drink)|does not (?:like|"
        rf"enjoy|want|eat|drink)|avoids?|would (?:much )?rather|['’]d (?:much )?rather|(?:am|is|are|'m|'re|"
        rf"'s) (?:a (?:big |"
        rf"huge )?fan of|not a fan of|(?:really |very )?(?:fond of|into|keen on|partial to)))\b"
    ),
    "likes or dislikes said shortly": (
        r"^(?:(?:and|but|so|also|oh|btw|honestly),? )*(?:love|hate|loathe|prefer|adore|can'?t (?:stand|bear)|"
        r"cannot (?:stand|bear)|not a fan of|"
        r"big fan of|don'?t like|not keen on|not into|allergic to)\b(?! (?:it|that|this|you|the \w+[.!]*$|"
        r"the last|how)\b)|\b(?:i'?d say )?(?!all\b|went\b|came\b|get\b|it\b|is\b)[a-z]+ over (?!there\b|here\b|"
        r"easter\b|it\b)[a-z]+(?=$|[,.;!]| (?:every|any|but|honestly|always)\b)|"
        r"^my taste\b|\b(?:bores?|annoys?|irritates?|disgusts?) me\b|"
        r"^(?:and |so |but )?no [\w -]{2,40} (?:for me|ever|please|pls)\b|\bi (?:do not|"
        r"don'?t) (?:much )?care for\b"
    ),
    "a favourite": r"\bfavou?rites?\b",
    "how to be addressed": r"(?:^|, )(?:please |just |you can )?call me\b|\bmy pronouns\b|\bi go by\b",
    "how to answer": (
        r"(?:^|[,:;.] (?:and |but )?)(?:please |pls |kindly )*(?:don'?t|do not|never|don'?t ever|"
        r"stop) (?:ever )?(?:sugar-?coat|flatter|butter|patronis|patroniz|"
        r"start|open|begin|call|use|say|lecture|apologi|repeat|suggest|add|give|ping|message|text|write|remind|"
        r"interrupt|correct|recommend|tell me|assume|book|plan|schedule)\w*\b"
        r"(?=.*\b(?:me|my|i|answers?|replies|emojis?|bullets?|an answer|ever)\b)|"
        r"^(?:(?:and|but|also|so),? )*(?:please |pls |can you |could you |can u )*(?:keep|write|talk|speak|"
        r"answer|reply|use|format|give|show|explain|assume|correct|ask|message|call|send|make)\b"
        r".*(?:\b(?:when (?:i|you|we)|whenever|always|each time|every time|in general|that'?s how|instead of my|"
        r"easy words|words easy|plain to me|mails? (?:short|under|below))\b|under \d+ words)|"
        r"^no (?:dots|bullets?|emojis?|lecture|fluff|jargon|preamble|smileys|faces|disclaimers|colou?r)\b|"
        r"\bwhen i ask (?:for|you|about)\b|\bprose\b.*\bforward\b|"
        r"\bhow i (?:like|want|learn)\b|\b(?:english|german|french|spanish|swedish|dutch|italian) (?:for chat|"
        r"only|please when)"
    ),
    "form of the answers": (
        rf"^(?!.*\b(?:i|you) (?:always|never)\b)(?=.*{OUTPUT})(?=.*(?:{LASTS}|\bfor (?:all|any|every)\b|"
        rf"\bmax(?:imum|\.)?\b|\bat most\b|\bno (?:lists?|bullets?|emojis?)\b|\bwhen you\b|\byour (?:answers|"
        rf"replies)\b|\bnot just now\b))|"
        rf"^(?:(?:and|also|pls|please),? )*keep (?:the |your |all )?(?:answers|replies|paragraphs|sentences|messages|"
        rf"explanations|things|words)\b"
    ),
    "a lasting wish": (
        rf"^(?:please |i want you to |i(?:'d| would) like you to |you should )?(?:always|never|from now on|"
        rf"in future|in the future|going forward|by default|don'?t ever|stop|avoid|no more)\b|"
        rf"^(?:please )?(?:don'?t|do not|use|keep|write|answer|reply|format|give|show|call|address|speak|talk|send|"
        rf"put)\b.*{INSTRUCTS}"
    ),
}
DECISION = {
    "decided": (
        rf"\b(?:{WHO}|i|they|team|board|management)(?:'ve|'s|'d)? {ADVERB}(?:have |has |had )?{ADVERB}"
        r"(?:decided|agreed|chose|chosen|settled on|made up (?:my|our) minds?|said no to|said yes to|"
        r"opted|resolved to|"
        r"approved|signed off|green-?lit|rejected|ruled out|voted|concluded|committed to)\b"
    ),
    "goes with": (
        r"\b(?:we|i)(?:'re| are|'m| am|'ll| will)? (?:going to go with|going with|go with|went with|"
        r"sticking with|taking|replacing|quitting|not going to support|"
        r"stick with|picked|pick(?! (?:\w+ )?up\b)|dropping|not going to use|moving to|switching to|"
        r"standardi[sz]ing on)\b|"
        r"^(?:ok(?:ay)?,? |so,? |then,? |great,? |alright,? )*let(?:'s|’s| us) (?:go with|use|stick with|pick|"
        r"choose|take|move to|switch to|drop|keep)\b"
    ),
    "a rule": (
        r"\bin (?:our|this|the) (?:\w+ )?(?:codebase|repo|repository|project|team|company|clinic|kitchen|office|"
        r"module|backend|frontend|monorepo|house|shop|school|lab)\b"
        r"(?=.*\b(?:never|always|only|must|no|not|nobody|every|all|needs?|gets?|use|uses|go|goes)\b)|\b(?:house|"
        r"team) (?:rule|law|policy)\b|\bcompany[- ]wide\b|"
        r"\bis (?:banned|forbidden|mandatory|not allowed)\b|\b(?:has|have) a (?:policy|rule)\b|^(?:(?:all|every|"
        r"no) [a-z][\w -]{2,30} (?:in|with|on)|(?:all|every|new|no) [a-z][\w -]{2,30} (?:go|goes|gets?|use|uses|"
        r"logs?|must|never|always)) |\bnever on a?\b|\bmax(?:imum)? \d+ (?:chars|"
        r"characters|words|lines|days|people)\b|"
        r"\b(?:keys|logs|files|tests|secrets|configs?|code|docs|deploys?|services|branches|commits) (?:go|goes|"
        r"live|lives|sit|sits|logs?|happen|leave|leaves|never|always) |"
        r"^no (?:meetings|merges|deploys|calls|shoes|phones|pets|smoking) \w+"
    ),
    "a decision": (
        r"\b(?:decision(?: is| was|:)|it(?:'s| is) (?:decided|settled|final|agreed)|settled then|"
        r"that's (?:decided|settled)|was (?:decided|approved|"
        r"rejected|agreed)|were (?:approved|rejected)|has been (?:decided|approved|rejected|agreed)|"
        r"final answer)\b"
    ),
}
TASK = {
    "has to be done": (
        rf"\b(?:{WHO}|i|you|someone|somebody) {ADVERB}(?:needs? to|have to|has to|must|ought to|'ve got to|"
        rf"have got to|has got to|got to|gotta|'s got to|needs? (?!(?:help|advice|ideas|a|an|the|some|no|"
        rf"two|three|one|\d)\b)) ?"
        rf"[a-z]+|\b(?:i|we|"
        rf"{NAME}) (?:should|must|shall) [a-z]+"
    ),
    "a reminder": (
        r"^(?:need to|gotta|have to|must|got to|outstanding:|still to do:) ?\w+|\bmustn'?t (?:miss|forget)\b|"
        r"\bowe \w+|\bremind me\b|\bto-?dos?\b|\bdon'?t (?:let me )?forget to\b|\baction items?\b|\bremember to\b"
    ),
    "an appointment": (
        r"\b(?:interview|exam|dentist|doctor|gp|appointment|flight|wedding|birthday|party|concert|surgery|op|"
        r"operation|trip|demo|play|reunion|"
        r"club|physio|scan|hearing|match|race|marathon|viewing|conference|reservation|recital|defen[cs]e|"
        r"graduation|funeral|therapy|visit)(?:'s)?\b"
        r"(?=.*(?:\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sep|"
        r"sept|oct|nov|dec)[a-z]*\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}[/.:]\d))"
    ),
    "due": (
        r"\b(?:due|deadline)\b|\b(?:by|before|until|no later than) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b|"
        r"\b(?:by|before) (?:tomorrow|tonight|next week|the end of|end of|noon|\d)"
    ),
    "plans to": (
        rf"\b(?:i|we|{NAME})(?:'m|'re|'s| am| are| is) (?:going to|planning to|about to|supposed to|meant to)\b|"
        rf"\b(?:i|we|{NAME})(?:'ll| will) [a-z]+ .*\b(?:tomorrow|tonight|next|on (?:mon|tues|wednes|thurs|fri|"
        rf"satur|sun)day|in (?:january|february|march|april|may|june|july|august|september|october|november|"
        rf"december)|this (?:week|month|evening|afternoon|weekend))\b|\b(?:i|we) promised\b|\bi (?:plan|intend|"
        rf"want|hope|aim) to\b(?! (?:say|know|ask|hear|thank)\b)"
    ),
}
FAILURE = {
    "failed": (
        r"\b(?:fail(?:ed|s|ing|ure)|crash(?:ed|es|ing)?|panics?|panicked|bounced|breaks|declined|"
        r"won't (?:start|drain|open|load|boot|turn|connect|install|build|compile)|permission denied|"
        r"access denied|access is denied|returns \d{3}|broke(?:n)?(?! up)|doesn'?t work|does not work|"
        r"didn'?t work|did not work|don'?t work|not working|stopped working|timed? ?out|timeout|went wrong|"
        r"went down|is down|was down|are down|(?:an?|the|this|same|get(?:s|ting)?|got|throws?|"
        r"with) (?:[\w-]+ )?(?:error|exception|bug|outage|segfault|stack ?trace)|out of memory|oom|got lost|"
        r"was lost|couldn'?t (?:connect|log in|open|find|reach|install|build|start|reproduce)|cannot (?:connect|"
        r"log in|open|reach|install|build|start)|can'?t (?:connect|log in|open|reach|install|build|start)|"
        r"corrupt(?:ed)?|data loss|regression|rolled back|had to (?:revert|roll back))\b"
    ),
}
FACT = {
    "of oneself": (
        rf"\b(?:i|we)(?:'m|'re| am| are| was| were) {ADVERB}(?:not )?(?:a|an|the|one of|from|in|at|on|based|born|"
        rf"called|named|living|working|married|engaged|divorced|single|widowed|vegetarian|vegan|allergic|"
        rf"intolerant|lactose|gluten|diabetic|pregnant|colou?r-?blind|left-handed|right-handed|retired|"
        rf"self-employed|unemployed|fluent|studying|learning|training|writing|applying|saving|moving|getting|"
        rf"planning|dating|raising|taking|expecting|considering|recovering|travelling|traveling|flying|renting|"
        rf"responsible|\d|twenty|thirty|forty|fifty|"
        rf"sixty|part of|member|parents?|hiring|building|running|using|migrating|short|tall|dyslexic|deaf|blind|"
        rf"autistic|jewish|muslim|christian|hindu|buddhist|[a-z]+(?:ese|ish|ian|can|ist|er|or|eer)\b)"
    ),
    "what one has and does": (
        rf"\b(?:i|we) {ADVERB}(?:don'?t |do not |didn'?t )?{ADVERB}(?:have|had|own|live|lived|work|worked|study|"
        rf"studied|speak|play|played|drive|drove|use|used|run|ran|teach|taught|grew up|moved|bought|sold|quit|left|"
        rf"joined|started|stopped|finished|graduated|got|married|adopted|hired|fired|founded|built|make|made|"
        rf"manage|lead|led|keep|earn|pay|paid|weigh|smoke|drink|eat|sleep|wake|get up|commute|cycle|rent|rented|"
        rf"switched|changed|lost|won|travel|travelled|traveled|visited|booked|ordered|signed|subscribe|cancelled|"
        rf"canceled|host|deploy|store|ship|released|launched|support|serve|sell|belong|practi[sc]e|train|attend|"
        rf"volunteer|collect|grow|raise|breed|share|take|took|spend|stay|wear|follow|suffer|need glasses|turned|"
        rf"retired|renamed|migrated|upgraded|replaced|passed|received|inherited|closed|opened|raised|hit|reached|"
        rf"write|wrote|paint|cook|bake|knit|sing|dance|swim|hike|climb|run|jog|meditate|read|publish(?:ed)?)\b"
    ),
    "has done": (
        rf"\b(?:i|we)(?:'ve| have) {ADVERB}(?:been|had|got|moved|bought|sold|quit|left|joined|started|stopped|"
        rf"finished|switched|changed|lived|worked|known|used|owned|booked|signed|adopted|become|lost|won|turned|"
        rf"hired|closed|opened|migrated|upgraded|replaced|swapped|entered|applied|passed|run|written|played|"
        rf"taught|had|married|retired|paid|agreed|enrolled|registered)\b"
    ),
    "of what is one's own": (
        rf"^(?:(?:and|but|so|well|oh|also|by the way|btw|actually|yes|yeah|no|"
        rf"sorry)[,.!]? )*{OWN}(?:'s)? {ADVERB}(?:is|are|was|were|has|have|had|isn'?t|aren'?t|wasn'?t|will be|'s|"
        rf"call|have|name|clean|want|lives?|lived|works?|worked|moved|died|passed|turned|turns|started|starts|"
        rf"got|goes|went|comes|came|runs|"
        rf"ran|needs?|likes?|loves?|hates?|speaks?|plays?|studies|studied|uses?|costs?|weighs?|drives?|said|says|"
        rf"told|takes?|took|left|quit|joined|bought|sold|wants?|prefers?|eats?|sleeps?|barks?|opens?|closes?|ends?|"
        rf"expires?|broke|crashed|arrives?|arrived|visits?|visited|teaches|called|calls|earns?|owns?|stays?|lost|"
        rf"won|became|retired|changed|switched|married|can'?t|cannot|can|doesn'?t|does not|must|should)\b"
    ),
    "of somebody": (
        rf"(?:^|[,;:] (?:and |but )?|\b(?:and|but|because|that|since|"
        rf"while) ){NAME}(?:'s(?: [\w-]+){{1,3}})? {ADVERB}(?:is|are|was|has|had|isn'?t|wasn'?t|will be|lives?|"
        rf"lived|works?|worked|moved|died|turned|turns|started|starts|got|goes|came|comes|runs|ran|needs?|speaks?|"
        rf"plays?|studies|studied|uses?|costs?|drives?|takes?|took|left|quit|joined|bought|sold|wants?|eats?|owns?|"
        rf"leads?|manages?|reports|sits|teaches|became|retired|married|handles?|maintains?|supports?|requires?|"
        rf"expires?|opens?|closes?|ships?|shipped|released|acquired|hired|said|told|calls?|called|changed|switched|"
        rf"doesn'?t|does not|can'?t|cannot)\b"
    ),
    "how a thing is": (
        r"^(?:(?:and|but|so|well|oh|also|by the way|btw|actually|yes|yeah|no|sorry)[,.!]? )*(?:the|our|his|her|"
        r"their|its|there)(?: [\w'’/#&.-]+){0,7}? (?:is|are|was|were|has|have|had|isn'?t|aren'?t|wasn'?t|costs?|"
        r"lives?|runs?|uses?|takes?|starts?|ends?|begins?|opens?|closes?|needs?|requires?|expires?|listens?|moved|"
        r"changed|contains?|holds?|belongs?|sits|weighs?|lasts?|arrives?|leaves?|became|supports?|depends?|"
        r"returns?|consists?|allows?|limits?|ships?|will be|must be|stays?|means?|went up|went down|rose|fell|"
        r"grew|increased|decreased|doubled|dropped)\b"
    ),
    "of oneself without a subject": (
        r"^(?:(?:and|but|so|also|oh|btw|ok|well|anyway|yes|no|nope),? )*(?:on (?:[a-z]+ )?(?:[a-z]{4,}(?:in|ol|"
        r"am|ine|one|ide|ate|an|il|ets|ication|eds|leave|disability|benefits|warfarin)\b|\d)|"
        r"been (?:on|a|an|in|at|with|playing|working|living)|born|(?:came|come|moved|hail) (?:from|to|here)|"
        r"liv(?:e|ing) (?:in|out|at|with|near|on|alone)|work(?:ing)? (?:as|at|in|for|on|from|\d)|"
        r"allergic|divorced|married|not married|single|widowed|retired|vegan|vegetarian|coeliac|celiac|diabetic|"
        r"diagnosed|booked|sold|bought (?:a|an|the|my|our)|"
        r"adopted|graduated|studying|studied|training for|quit|got (?:a|an|the|my|\d|married|engaged|divorced|"
        r"promoted|fired|into|accepted)|turned \d|starting (?:as|at|with|in|my|a)|never learn(?:ed|t)|"
        r"need (?:\d|to)|own (?:a|an|two|\d)|drive (?:a|an)|speak [A-Za-z]|renting|day rate|no (?:alcohol|pork|"
        r"meat|dairy|gluten|sugar|nuts|fish|kids|pets|car|children)\b)"
    ),
    "what one cannot or will not": (
        r"\b(?:i|we) (?:really |just |also |simply )?(?:can'?t|cannot|can not|never|don'?t|do not|no longer|"
        r"am not|'m not|won'?t) (?:ever |really |even |usually )?(?!know\b|think\b|see\b|believe\b|"
        r"mind\b|wait\b|remember\b|understand\b|get\b|find\b|wanna\b|want to\b|sure\b|care\b|feel\b|mean\b|say\b|"
        r"tell\b|have time\b|thought\b|propose\b|complain\b|wish\b|stop\b|decide\b|agree\b|save\b|keep\b|"
        r"help\b)[a-z]{2,}"
    ),
    "what does one good or harm": r"\b(?!(?:it|that|this|which|he|she|they|you|who)\b)[a-z]+ (?:makes?|gives?|"
    r"nearly killed|almost killed|made|gave) me\b(?! (?:laugh|smile|think|wonder|happy|sad|cry|feel|a (?:sec|"
    r"minute|moment)|the)\b)",
    "a relation told shortly": (
        r"^(?:(?:and|but|so|oh|btw),? )*(?:wife|husband|mum|mom|dad|mother|father|son|daughter|sister|brother|"
        r"grandma|grandpa|gran|nan|partner|girlfriend|boyfriend|boss|landlord|accountant|"
        r"eldest|youngest|(?:the )?(?:kids|twins|baby|wife|dog|cat))(?:'s)? (?:is|are|was|an?|has|had|got|lives?|"
        r"works?|drives?|turns?|turned|does|moved|comes?|starts?|started|goes|teaches|hates|loves|likes)\b"
    ),
    "a change": (
        r"(?:^|[,;] )(?:and |so |but )?it(?:'s| is) .*\bnow\b|\b(?:no longer|not any ?more|any ?more\b|used to|"
        r"instead of|changed (?:to|from|it)|moved (?:to|from)|"
        r"switched (?:to|from)|renamed|as of|effective|since (?:last|yesterday|january|february|march|april|may|"
        r"june|july|august|september|october|november|december|\d))\b"
    ),
    "a correction": (
        r"^(?:actually|sorry|correction|(?:wait|no)(?=[,:])|oops|i meant|i misspoke|small correction)"
        r"[,:]? (?!(?:thanks|thank|"
        r"worries|problem|never|that's all|nothing|not (?:that|this|the|yet|really|now)|(?:not )?that one|"
        r"the other)\b)(?:it(?:'s| is| was)|i meant|my|the|we|he|she|they|i |"
        r"make (?:it|that)|not )"
    ),
    "who belongs to whom": (
        rf"\b(?:my|our|his|her) (?:partner|wife|husband|son|daughter|sister|brother|mother|father|mum|mom|dad|boss|"
        rf"manager|doctor|dentist|neighbou?r|friend|colleague|cat|dog|cousin|aunt|uncle|girlfriend|boyfriend|"
        rf"landlord|vet|therapist|accountant|niece|nephew|flatmate|grandson|granddaughter|fianc[eé]e?|tutor|teacher|"
        rf"coach|agent|supervisor|gran|nan|grandma|grandpa)s?,? {NAME}"
    ),
    "what one gets": (
        r"\bi (?:often |always |usually |sometimes |badly )*get (?!(?:it|that|this|the idea|you|why|what|how|to|"
        r"a chance|back)\b)[a-z]+"
    ),
    "of somebody named before": (
        r"^(?:and |so |but )?(?:he|she|they|it)(?:'s|'re)? (?:wants?|turns?|"
        r"turned|is|are|was|were|has|have|had|lives?|works?|moved|likes?|loves?|hates?|"
        r"prefers?|studies|plays?|speaks?|costs?|runs?|uses?|needs?|allergic|\d|a|an|the|called|named|born|from|"
        r"in|vegetarian|vegan|married|expecting|starting)\b"
    ),
}
GREETING = r"^(?:hi|hello|hey|hiya|good (?:morning|evening|afternoon)|kia ora)\b[^\w]*"
GOES_ON = r"[,;:—–-] |, (?:and|but|so) | (?:and|but|because) "
NAMED_INSIDE = r"(?<=[a-z,;:] )(?!I\b|I'|OK\b|TV\b|[A-Z]{5,}\b)[A-Z][\w'-]+"
VERB = (
    r"\b(?:is|are|was|were|am|be|been|has|have|had|do|does|did|will|would|can|can't|could|must|should|may|"
    r"might|won't|"
    r"isn't|aren't|wasn't|hasn't|haven't|[a-z]+(?:ed|ing)|keeps?|takes?|took|gave|gives?|goes|went|comes?|"
    r"came|says?|said|"
    r"means?|meant|needs?|wants?|puts?|sees?|saw|makes?|made|gets?|got|leads?|led|runs?|ran|lives?|talks?|"
    r"leaves?|left|"
    r"signs?|starts?|ends?|costs?|pays?|paid|sends?|sent|bought|sold|hates?|loves?|likes?|owes?|drops?|loses|"
    r"lost|grew)\b"
    r"|\w'(?:s|re|ve|ll|m|d)\b"
)
PASSING = (
    r"^(?:(?:and|so|but|well|oh|yes|yeah|no)[,.!]? )*(?:i|we)(?!'ve got\b| have got\b)(?:'ve| have)? (?:just |only |"
    r"also )?(?:had|ate|eat|"
    r"went|saw|tried|was (?:looking|reading|trying|talking|about)|were (?:looking|talking|trying)|read|watched|"
    r"got|took|slept|woke|left|started|finished|made|ran) (?!.*\b(?:job|married|divorced|degree|licen[cs]e|houses?|"
    r"flat|apartment|cars?|dogs?|cats?|kids|baby|promot\w+|diagnos\w+|replaced|removed|knee|hip|surgery|"
    r"operation|company|hired|fired|accepted|visa|"
    r"passport|marathon|school|university|business|smoking|drinking|therapy|treatment|medication|allerg\w+|since|"
    r"years?|months?|every|from .* to)\b)"
)
TODAY = r"\b(?:today|tonight|this morning|right now|at the moment|just now|a minute ago|earlier)\b"

PROMISE = (
    r"\b(?:I(?:'ll| will| can| could)|I(?:'m| am) going to|let me|I'd) (?!be able)[a-z]+|\b(?:will do|noted|"
    r"got it|understood|on (?:the|your) list|"
    r"I'(?:ve|ll) (?:noted|kept|remembered|updated|taken|written|left|recorded|saved)|taken (?:off|care))\b"
)
"""What the assistant means to do is its own, and what it wrote down was the user's."""
FLEETING = (
    r"^(?:as|like) i (?:said|told|mentioned)\b|\b(?:need|must|have|got) to (?:know|say|vent|ask you|laugh|admit|"
    r"confess|go (?:now|and)|run)\b|"
    r"\bi (?:should|shall) (?:say|like|think|allow|see)\b|\bi need (?:somebody|someone)\b|"
    r"^.{0,30}\bi love (?:it|you|that|this)\b|^(?:and |so |but )?that'?ll\b|^(?:(?:and|so|but|ok|well|oh|ugh|"
    r"sorry|right|anyway|lol),? )*(?:(?:i'?m|we'?re|im|i am) )?(?:brb|gtg|bored|starving|hungry|thirsty|"
    r"knackered|exhausted|"
    r"confused|lost(?! (?:my|our|the|a|an|his|her|it)\b)|dead|freezing|off to|gonna (?:grab|eat|get|have|go|sleep|"
    r"crash|take)|about to (?:jump|go|"
    r"leave|eat|sleep|head|hop|board|get|make|have|start)|hang on|hold on|"
    r"one (?:sec|moment|minute)|on (?:the|my) (?:bus|train|tram|way|phone|sofa|couch)|back in|heading (?:out|off|"
    r"home|to bed))\b|"
    r"^(?:and |so |but )?you(?:'d)? (?:said|told|promised|mentioned|asked|swapped|forgot|left|misread|got|missed|"
    r"changed|dropped|ignored|wrote|stored)\b|^(?:that|this)(?:'s| is) (?:wrong|incorrect|off|not (?:right|"
    r"it))\b|^(?:and |so |but |ugh,? )?my (?:brain|head|fingers|face|eyes|feet|phone|battery|tea|coffee|jaw|"
    r"bum)(?:'s)? (?:is|are|was|were|hurts?|'s|at|feels?)\b|"
    r"\b(?:going to|gonna|started to) (?:snow|rain|pour)|\b(?:it'?s|it is) (?:\w+ )?(?:snowing|"
    r"raining|pouring|freezing|chucking|hailing)|"
    r"^.{0,20}\b(?:lol|haha|lmao)$|^(?:this|that) i (?:like|love)\b|\bfair enough\b|"
    r"\b(?:wish me luck|don'?t mind me|bear with me|swear to god|made me laugh|no idea why)\b"
)
"""A state of the moment."""
THIS_TIME = (
    r"\b(?:this (?:time|one|once|answer|reply|email|mail|caption|snippet|message)|just (?:this )?once|for now|"
    r"in (?:this|that) (?:snippet|file|text|caption|mail|post|one|paragraph))\b"
)
"""Makes a wish for the moment out of a request."""
INTRODUCES = (
    r"^(?:(?:[Hh]i|[Hh]ello|[Hh]ey|[Oo]k|[Ss]o|[Rr]ight|[Ww]ell|[Bb]asics|"
    r"[Ii]ntro)[!,.: >-]* )*(?:[A-Z][\w'-]+ here\b|[Ii]'?m [A-Z]|[Ii] am [A-Z]|[Mm]y name|(?:[Ii]t'?s|"
    r"[Nn]ame'?s) [A-Z]|[Mm]yself [A-Z])|"
    r"^[a-z]\w+ here[,.] |\b\d\d ?(?:y/?o|yo|yr|years? old)\b|\b\d\d ?[fFmM]\b|^[A-Z]\w+ [A-Z]\w+\.$|\b\d'\d|"
    r"\b\d+ ?(?:lbs?|kg|cm)\b|^[A-Z]\w+ [A-Z]\w+[.,] \d\d\b|^[A-Z][\w ]+, \d\d\b|"
    r"\b(?:[Ii] (?:work as|teach|live in|own|run)|[Ii]'?m an? [a-z]+ (?:in|at|from|for|and|with)) |\b[Bb]orn \d|"
    r"^(?:[Rr]etired|[Ss]taff|[Ss]enior|[Jj]unior|P[Hh]D|[Ss]ingle) "
)
"""Tells who speaks. Capitals count."""
TASKS_FOLLOW = (
    r"\bthings? (?:to (?:be done|do)|i (?:have|need) to do)\b|\bto-?do\b|\bon my list\b|\bi will forget\b|"
    r"^(?:must|need|got to|have to)\b[ \w]{0,15}:$|\bhold me to\b|\bdon'?t let me forget\b"
)
"""After it orders are the speaker's own tasks."""
MAY_DO = (
    r"\b(?:i|we)(?: (?:might|may|could|will probably)|'ll probably|(?:'m| am|'re| are) thinking (?:of|"
    r"about)) (?:move|moving|quit|quitting|drop|dropping|leave|leaving|buy|buying|sell|"
    r"selling|take|taking|start|starting|change|changing|switch|switching|apply|retire|study|marry|adopt|"
    r"adopting|an?)\b"
)
"""A plan that is not sure. It is kept with its doubt."""
CLAUSES = (
    r",? (?:and|but|so|because|then|anyway)(?: then| anyway| while i waited)* (?=(?:i|i'm|i've|we|my|our|the|he|"
    r"she|they|it|there|while|also)\b)|; |, (?=(?:i|i'm|we|my) [a-z]+)"
)
"""Where one clause ends and the next begins."""
ONLY_LIKENED = (
    r"\b(?:felt|feels?|sounds?|looks?|smells?|seems?|was|is|are|acts?|slept|of it|it|that|this|him|them|me|stuff|"
    r"\w+ing|porridge|[^\w\s,.]) (?:\w+ )?like (?:a|an|the|that|i'?m|it|you|he|she|i|\w+ing)\b"
)
"""Compares, and likes nothing."""
NAMES_SOMEBODY = (
    r"\b(?:my|our) [a-z]+|\b(?:mum|mom|dad|wife|husband|sister|brother|son|daughter|boss|doctor|landlord|"
    r"neighbou?r)\b|^[A-Z][a-z]+(?:'s)? [a-z]+"
)
OF_SOMEBODY = (
    r"^(?:(?:and|so|but|also|oh|because|then),? )*(?:he|she|they|it|his|her|their|its|he's|she's|they're|it's|"
    r"hes|shes)\b|^been on it\b|^mine\b"
)
"""Begins with somebody or something named before."""
RESULT = {
    "did it": (
        r"^(?:(?:done|ok(?:ay)?|great|good news|all set|update)[,.:!—-]+ ?)*I(?:'ve| have)? (?:now |just |"
        r"already |successfully |also )*(?:booked|sent|put together|prepared|drafted|counted|calculated|"
        r"credited|arranged|created|filed|fixed|scheduled|ordered|updated|deployed|"
        r"merged|refunded|cancelled|canceled|submitted|published|uploaded|moved|renamed|deleted|removed|restarted|"
        r"reset|rolled back|installed|configured|added|paid|transferred|reserved|confirmed|opened|closed|assigned|"
        r"escalated|emailed|called|registered|saved|pushed|released|migrated|reverted|found|ran|tested|verified|"
        r"measured|reproduced|changed|set)\b"
    ),
    "came out": (
        r"\b(?:root cause (?:is|was)|(?:is|was|were) caused by|came from|finished:|failed|fails?|did not work|"
        r"didn't work|bounced|was declined|returns \d{3}|has been (?:shipped|sent|booked|cancelled|refunded|"
        r"approved)|were given|instead of \d|turned out|turns out|all tests pass(?:ed)?|"
        r"tests? (?:now )?pass(?:es|ed)?|"
        r"build (?:passed|failed|succeeded)|the (?:total|result|answer|outcome|cause|reason|refund|order|ticket|"
        r"booking|reservation|confirmation|invoice|deployment|migration|meeting|appointment|flight|package|"
        r"backup)(?: [\w#-]+){0,4} (?:is|was|has been|comes to|came to|will be)\b)"
    ),
    "decided together": (
        r"\b(?:we(?:'ve| have)? (?:decided|agreed|settled|chose|picked|ruled out)|we're going with|"
        r"it's (?:final|decided|settled)|that's (?:decided|settled)|(?:so|then|agreed|decision)[,:] (?:we|"
        r"it)(?:'ll|"
        r" will|'s| is| go| use))\b"
    ),
}
ECHO = (
    r"^(?:(?:so|well|yes|right|ok(?:ay)?|sure|great|of course|perfect|noted|got it)[,.!:]? )*(?:you\b|"
    r"I'm (?:glad|sorry|happy)|"
    r"since you|your [a-z' ]+ (?:is|are) "
    r"(?!\S*\d))|\b(?:you (?:said|told|mentioned|asked)|as (?:you|I) (?:said|mentioned)|based on what|what I "
    r"(?:remember|know|have)|I (?:remember|recall|have noted)|from (?:our|what|my) |according to)\b"
)
ASKS_TO = r"^(?:(?:love|ok|thanks)[^.!?]*[.,] )?(?:can|could|would|will) (?:you|u) (?:please )?"
ASKS_USER = r"\b(?:you|your)\b.*\?[\"'”’)]*$"
ENGLISH = (
    r"\b(?:the|i|i'm|i've|my|is|are|to|and|we|we're|you|it|it's|for|with|that|this|not|have|has|"
    r"don't|be|at|please|thanks|"
    r"our|can|can't|yes|but|like|how|what|good|hi|hello|take|your|just|get|got|from|by|up|out|if|"
    r"about|they|she|his|her|"
    r"there|their|again|morning|back|need|want|still|soon|too|very|ok|okay|of|were|been|had|did|does|who|when|where|"
    r"called|now|new|likes?|loves?|lives|works|which|way|fair|enough|wrong|draw|set|thought|him|them|would|could|"
    r"should|some|any|more|first|"
    r"before|after|because|really|something|anything|nothing|never|always|only|than|then|today|tomorrow|"
    r"yesterday|week|weeks|month|months|year|years|night|kids|wife|husband|"
    r"mum|mom|dad|into|until|without|over|under|don'?t|dont|im|ive|cant|allergic|divorced|married|retired|born|"
    r"moved|living|working|no way|that's|thats|test|it|sorry|"
    r"pls|plz|between|instead|points|give|tell|show|write|use|make|add|create|explain|quiz|prove|reverse|recover|"
    r"delete|deleted|resume|notes|joke|call|calls|me a|discuss|short|two|three)\b"
)
"""Words that other languages have not: "in", "was" and "will" are German too."""
ASSENT = (
    r"^(?:yes|yeah|yep|no|nope|ok(?:ay)?|sure|maybe|thanks|thank you|right|exactly|correct|fine|good|great|"
    r"perfect|both|neither|none|nothing|sounds good|go ahead|please do|not yet|done|i don'?t know|no idea|"
    r"never mind)\b[\s.!,]*$"
)
