"""What is told of a person's health, religion, politics, sexuality, ethnicity, union and crimes.

A text is of a topic where a sentence has a word of the topic and says it of a person: not a doctor's job, not a church
as a building. Words are written without accents, in seven languages; `*` stands for any ending.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple
from unicodedata import combining, normalize

Topic = Literal["health", "religion", "politics", "sexuality", "ethnicity", "union", "crime"]

_FACTS: dict[Topic, str] = {
    "health": """
allergic to|allergies|allergy|diabetic|diabetes|asthma|asthmatic|epilep*|migraine*|depressed|depression
|anxiety disorder|panic attack*|panic disorder|bipolar|schizophren*|autis*|adhd|asperger*|ptsd|ocd|dyslexi*|anorexi*
|bulimi*|eating disorder|cancer|leukemia|leukaemia|lymphoma|melanoma|tumor|tumour|chemo*|radiotherapy|hiv|hepatitis
|tuberculosis|covid|lupus|crohn*|colitis|celiac|coeliac|gluten intoleran*|lactose intoleran*|fibromyalgia|arthritis
|osteoporosis|multiple sclerosis|parkinson*|alzheimer*|dementia|a stroke|strokes|heart attack|heart condition
|heart disease|pacemaker|high blood pressure|blood pressure|hypertension|cholesterol|thyroid|hypothyroid*|insulin
|metformin|antidepress*|sertraline|prozac|zoloft|lithium|ritalin|statins|warfarin|blood thinner*|medication|prescribed
|pregnan*|miscarr*|ivf|menopaus*|endometriosis|pcos|infertil*|wheelchair|disabled|disability|deaf|blind in
|hearing aid*|prosthe*|amput*|dialysis|kidney failure|kidney stone*|transplant|surgery|operated on|operation on
|hospitali*ed|diagnosed|diagnosis|in rehab|recovering alcoholic|alcoholic|addict*|sober|in therapy|my therapist
|his therapist|her therapist|see a therapist|sees a therapist|seeing a therapist|my psychiatrist|his psychiatrist
|her psychiatrist|burnout|burned out|chronic*|insomnia|sleep apnea|eczema|psoriasis|sciatica|slipped disc|herniated
|broke my|broken leg|broken arm|concussion|vaccinated|suicid*|self-harm*|overdose*|herpes|chlamydia|syphilis|gout
|malignant|metasta*|biopsy|remission|methotrexate|ozempic|wegovy|levothyroxine|adderall|xanax|anemi*|anaemi*|epipen
|inhaler|abortion|hernia|seizure*|vertigo|tinnitus|long covid|sickle cell|cystic fibrosis|down syndrome|allergisch
|allergie*|unvertraglichkeit|intoleranz|diabetik*|zuckerkrank|asthmatiker*|depression*|depressiv|angststorung*|krebs
|brustkrebs|schlaganfall|herzinfarkt|herzfehler|bluthochdruck|blutdruck|schilddruse*|schwanger*|fehlgeburt|schwerhorig
|gehorlos|rollstuhl|behinder*|chronisch*|diagnostiziert|operiert|bandscheib*|medikament*|tabletten|therapie|bin krank
|ist krank|chronisch krank|erkrankt|krankheit|suchtig|alkoholiker*|trockener alkoholiker|rheuma|zoliakie
|laktoseintoleran*|demenz|herzschrittmacher|insulinpflichtig|allergique*|diabetique*|asthmatique|depressif|depressive
|enceinte|fausse couche|avc|infarctus|hypertendu*|tension arterielle|handicap*|fauteuil roulant|sourd|sourde|aveugle
|opere|operee|diagnostique|diagnostiquee|traitement|maladie|malade|sclerose*|migraines|sous antidepresseurs|alcoolique
|coeliaque|intolerant*|seropositi*|alergic*|alergia*|diabetic*|asmatic*|asma|depresion|ansiedad|embarazada|aborto
|hipertens*|tension alta|infarto|ictus|discapacidad|silla de ruedas|sordo|sorda|operaron|operado|operada|diagnosticad*
|me diagnosticaron|enfermo|enferma|enfermedad*|migrana*|celiac*|tratamiento|medicacion|pastillas|alcoholico*
|intolerante a|tiroides|marcapasos|seropositiv*|quimio*|allergic*|allergia|diabete|depressione|ansia|incinta|ipertes*
|pressione alta|disabil*|sedia a rotelle|operato|operata|diagnosticat*|malat*|malattia|epiletti*|emicrani*|terapia
|farmac*|alcolista|intollerant*|tiroide|tumore|cancro|sieropositiv*|chemio*|gravida|depressao|ansiedade|pressao alta
|deficiente|deficiencia|cadeira de rodas|surdo|surda|doenca|doente|enxaqueca*|remedio para|remedios para|medicacao
|alcoolatra|tireoide|hipotireoidismo|cirurgia|cancer de|allergie|suikerziekte|astma|depressie|depressief|angststoornis
|kanker|borstkanker|beroerte|hartaanval|hartinfarct|hoge bloeddruk|bloeddruk|schildklier|zwanger|miskraam|rolstoel
|gehandicapt|doof|slechthorend|geopereerd|gediagnosticeerd|ziekte|medicijn*|verslaafd|alcoholist|coeliakie
|lactose-intoleran*|dementie|chronisch|overspannen|burn-out""",
    "religion": """
muslim*|christian|catholic|protestant|orthodox jew*|jewish|jew|buddhist|hindu|sikh|mormon|jehovah*|atheist|agnostic
|baptist|lutheran|methodist|evangelical|anglican|quaker|pentecostal|wiccan|pagan|bahai|born-again|born again
|converted to islam|converted to judaism|converted to catholicism|converted to *ism|converted to christianity|baptized
|baptised|bar mitzvah|bat mitzvah|practising muslim|practising catholic|kosher|halal|ramadan|sabbath|shabbat|devout
|believe in god|pray|prays|praying|synagogue|mosque|church every|go to church|goes to church|religious|salah|hijab
|my faith|her faith|his faith|left the church|parishioner|muslimin|moslem|christ|christin|katholi*|evangelisch|judisch
|jude|judin|buddhistin|atheistin|konfession*|getauft|konvertiert|glaubig*|aus der kirche ausgetreten|ungetauft|betet
|bete|zeuge jehovas|zeugin jehovas|hinduistisch|musulman*|chretien*|catholique*|protestante|juif|juive|bouddhiste
|athee|croyant*|pratiquant*|bapteme|baptise*|prie|converti*|temoin de jehovah|catolic*|cristiano|cristiana|judio|judia
|judios|budista|ateo|atea|creyente|practicante|bautiz*|rezo|reza|convirt*|testigo de jehova|evangelic*|cattolic*|ebreo
|ebrea|ebrei|buddista|credente|praticante|battezzat*|prega|prego|convertit*|testimone di geova|cristao|crista
|muculman*|judeu|ateu|ateia|crente|batizad*|candomble|umbanda|espirita|convertid*|moslim*|christen|katholiek
|gereformeerd|protestants|joods|boeddhist*|atheist*|gelovig|bekeerd|gedoopt|bidt|hindoe""",
    "politics": """
voted for|vote for|voted labour|voted leave|voted remain|voted tory|voted green|voted conservative|voted republican
|voted democrat|voted trump|voted biden|voted left|voted right|votes for|voting for|republican|democrat
|conservative voter|labour voter|tory|socialist|communist|anarchist|libertarian|left-wing|right-wing|leftist|far-right
|far-left|green party|party member|member of the * party|labour party|lib dem*|libdem*|snp|plaid cymru|reform uk
|knock* on doors for|tories|greens|campaigned for|canvass*|marxist|trump supporter|maga|pro-choice|pro-life|monarchist
|brexiteer|politically|political views|political activist|activist|a liberal|liberal voter|wahlt|wahle die|wahle seit
|gewahlt habe|habe * gewahlt|wahler|spd|cdu|csu|afd|fdp|die grunen|die linke|linken|parteimitglied|kommunist*
|sozialist*|sozialdemokrat*|rechtsextrem*|ortsverein|politisch aktiv|linke politik|vote pour|vote a gauche|a vote
|a gauche|de gauche|de droite|extreme droite|militant*|communiste|socialiste|adherent* au parti|encarte*|macroniste
|gaulliste|rassemblement national|ecologiste|vote a|voto a|votamos|votante|votar|de izquierdas|de izquierda
|de derechas|de derecha|comunista|socialista|afiliad* al|milito en|milita en|militante|psoe|vox|podemos
|independentista|votat*|di sinistra|di destra|iscritt* al|iscritt* a rifondazione|rifondazione|tesserat*|leghista
|il pd|del pd|fratelli d'italia|anarchic*|votei|votou|de esquerda|de direita|petista|bolsonarista|filiad* a*|lulista
|stemt op|stem op|stemde op|gestemd|linkse|rechtse|vvd|pvda|groenlinks|pvv|partijlid|lid van de partij""",
    "sexuality": """
gay|lesbian|bisexual|as bi|is bi|i'm bi|am bi|pansexual|asexual|queer|homosexual|heterosexual|i'm straight|is straight
|am straight|transgender|trans|non-binary|nonbinary|came out as|came out to|coming out|transitioned|transitioning
|polyamor*|lgbt*|demisexual|closeted|in the closet|same-sex|attracted to men|attracted to women|sex life|hrt|schwul*
|lesbisch*|bisexuell|homosexuell|geoutet|transfrau|transmann|asexuell|pansexuell|nichtbinar|homosexuel*|lesbienne*
|bisexuel*|transgenre|asexuel*|pansexuel*|non binaire|lesbiana|transexual|salio del armario|no binari*
|sali del armario|lesbica|omosessual*|bisessual*|asessual*|non binari*|homossexual|bissexual|assexual|nao-binari*
|saiu do armario|se assumiu|lesbienne|homoseksueel|biseksueel|uit de kast|aseksueel|non-binair""",
    "ethnicity": """
ethnic*|african american|african-american|black woman|black man|is black|am black|i'm black|black family|latino|latina
|latinx|hispanic|roma family|roma woman|roma man|is roma|am roma|i'm roma|we're roma|are roma|romani|sinti|gypsy|kurd
|kurdish|native american|indigenous|aboriginal|maori|first nations|cherokee|navajo|mixed race|mixed-race|biracial
|of * descent|of * origin|ancestry|my roots|heritage|kurds|yazidi*|basque|hmong|igbo|yoruba|hausa|zulu|xhosa|berber*
|amazigh|tatar*|pashtun*|hazara*|rohingya*|inuit|creole|han chinese|punjabi|half japanese|half-japanese|half chinese
|half-chinese|half korean|half-korean|half thai|half-thai|half filipino|half-filipino|half filipina|half-filipina
|half nigerian|half-nigerian|half ghanaian|half-ghanaian|half jamaican|half-jamaican|half indian|half-indian
|half pakistani|half-pakistani|half turkish|half-turkish|half moroccan|half-moroccan|half mexican|half-mexican
|half brazilian|half-brazilian|half colombian|half-colombian|half irish|half-irish|half italian|half-italian
|half polish|half-polish|half greek|half-greek|half vietnamese|half-vietnamese|half iranian|half-iranian|half egyptian
|half-egyptian|half lebanese|half-lebanese|half black|half-black|half white|half-white|person of color
|person of colour|white man|white woman|caucasian|asian american|ashkenazi|sephardic|afro-*|sami|descended from|uyghur
|tamil|ethnically|dalit|caste|turkischer abstammung|abstammung|wurzeln|migrationshintergrund|ist schwarz|bin schwarz
|schwarze frau|schwarzer mann|kurde|kurdin|kurdisch|roma-familie|sinto|sintiza|afrodeutsch*|herkunft|d'origine
|origines|metisse*|metis|suis noir|suis noire|est noir|est noire|kabyle|berbere|tsigane|d'origine arabe|antillais*
|gitan*|de origen|ascendencia|raices|mestiz*|indigena|afrodescendiente|soy negro|soy negra|es negro|es negra|mapuche
|di origine|origini|mulatt*|meticci*|sono nero|sono nera|sou negro|sou negra|e negro|e negra|sou pardo|sou parda
|sou preto|sou preta|mestic*|descendente|quilombola|de origem|afkomst|van * afkomst|surinaams*|marokkaanse
|hindoestaans*|molukse*|donkere huid|ben zwart|is zwart""",
    "union": """
union member|member of the union|trade union|labor union|labour union|union rep|shop steward|unionized|unionised
|union dues|in the union|our union|my union|the union|joined the * union|nurses' union|teachers' union|workers' union
|students' union rep|bargaining committee|union*s committee|teamster*|unison|seiu|unite member|gmb|union card
|on strike|union organizer|union organiser|union delegate|union steward|gewerkschaft*|betriebsrat|betriebsratin|ver.di
|verdi|ig metall|vertrauensmann|syndicat*|syndique*|syndicaliste|cgt|cfdt|delegue* syndical*|fo depuis|sindica*
|afiliad* a ccoo|ccoo|comisiones obreras|ugt|enlace sindical|sindacat*|cgil|cisl|uil|iscritt* alla cgil|rsu
|sindicalizad*|sindicat*|sindicato|cgtp|vakbond*|fnv|cnv|ondernemingsraad|kaderlid|abvv""",
    "crime": """
convicted|conviction|felony|felon|misdemeanor|misdemeanour|arrested|in prison|in jail|went to jail|went to prison
|prison|jail|served time|served * years|on parole|probation officer|on probation|criminal record|dui|dwi|shoplift*
|burglary|charged with|indicted|sentenced|on bail|juvenile record|caught stealing|fraud conviction|restraining order
|suspended sentence|guilty of|pleaded guilty|pled guilty|assault|house arrest|community service|ex-con|ankle monitor
|caution for|embezzl*|police record|drunk driving|vorbestraft|verurteilt|verhaftet|gefangnis|im knast|knast|bewahrung
|vorstrafe*|strafbefehl|festgenommen|trunkenheit am steuer|diebstahls|angeklagt|untersuchungshaft|haft|condamne*
|arrete*|casier judiciaire|sursis|garde a vue|mis en examen|mise en examen|bracelet electronique|incarcere*|condenad*
|carcel|detenid*|antecedentes penales|antecedentes|libertad condicional|prision|arrestad*|imputad*|condannat*|carcere
|arrestat*|precedenti penali|liberta vigilata|domiciliari|galera|fedina penale|patteggiat*|denunciato|denunciata
|foi preso|foi presa|fui preso|fui presa|esta preso|esta presa|cadeia|ficha criminal|antecedentes criminais
|liberdade condicional|prisao|tornozeleira|veroordeeld|gevangenis|gearresteerd|strafblad|voorwaardelijke|taakstraf
|aangehouden|opgepakt|in de cel|reclassering""",
}

_PERSON = r"""
i|i'm|im|i've|ive|my|me|mine|myself|we|our|us|he|she|he's|she's|his|her|him|they|their|user|patient|mum|mom|mother|dad
|father|brother|sister|son|daughter|wife|husband|partner|girlfriend|boyfriend|friend|uncle|aunt|cousin|grand\w+
|grandma|grandpa|neighbo\w+|colleague|boss|kid|child|baby|nephew|niece|fiance\w*|roommate|flatmate|coworker|manager|ex
|ich|mein\w*|mir|mich|wir|unser\w*|er|sie|sein\w*|ihr\w*|mutter|mama|vater|papa|bruder|schwester|sohn|tochter|frau
|mann|oma|opa|freund\w*|onkel|tante|kollege|kollegin|nachbar\w*|chef|chefin|je|j'ai|j'\w+|mon|ma|mes|moi|nous|notre|il
|elle|sa|ses|mere|pere|frere|soeur|fils|fille|mari|femme|copain|copine|ami|amie|oncle|cousin\w*|voisin\w*|collegue|yo
|soy|tengo|mi|mis|nosotros|nuestr\w+|el|ella|su|madre|padre|hermano|hermana|hijo|hija|marido|esposa|esposo|mujer
|abuel\w+|novi\w+|amig\w+|tio|tia|vecin\w+|jef\w|estoy|fui|voto|primo|prima|io|sono|ho|mio|mia|mie|miei|noi|nostr\w+
|lui|lei|suo|sua|fratello|sorella|figlio|figlia|marito|moglie|nonn\w|amic\w+|zio|zia|cugin\w|collega|mamma|babbo|eu
|sou|tenho|meu|minha|meus|minhas|nos|nosso|nossa|ele|ela|seu|dele|dela|mae|pai|irmao|irma|filho|filha|avo|namorad\w
|vizinh\w|estou|votei|chefe|ik|mijn|wij|ons|onze|hij|zij|ze|haar|moeder|vader|broer|zus|zoon|dochter|man|vrouw
|vriend\w*|oom|buurman|buurvrouw|heb|ben
"""
_WORK = r"""
(?:works?|worked|working|job|career|employed|intern\w*|volunteers?) (?:as|at|for|in|on|with)|researcher|research\w*
|thesis|dissertation|lecture\w*|startup|start-up|article|podcast|documentary|novel|movie|film|museum|conference
|charity|fundrais\w+|nonprofit|ward|professor|studies|studying|study|course|textbook|specialist|dataset|customers?
|clients?|project|software|app for|essay|exam|architecture|building|tourist|concert|wedding venue|opposite the
|next to the|near the|behind the|arbeite\w* (?:als|in|bei|an|fur)|arbeitet|forsch\w+|doktorarbeit|studier\w+|artikel
|neben der|gegenuber|projekt|travaille (?:comme|dans|a|sur|chez|pour)|recherche|these|etudie|a cote de|en face|projet
|trabaj\w+ (?:en|de|como|para|con)|investig\w+|tesis|estudi\w+|al lado de|enfrente|proyecto
|lavor\w+ (?:in|come|per|a|al|su|con)|ricerc\w+|tesi|studi\w+|accanto|di fronte|progetto
|trabalh\w+ (?:em|no|na|como|para|com)|pesquis\w+|tese|estud\w+|ao lado|em frente|projeto
|werk\w* (?:als|bij|in|aan|voor)|onderzoek\w*|scriptie|studeer\w*|naast de|tegenover
"""
_ANIMAL = r"""
dogs?|puppy|cats?|kitten|horse|pony|rabbit|hamster|parrot|goldfish|hund|katze|pferd|chien\w*|chats?|cheval|perr[oa]s?
|gat[oa]s?|cane|gatt[oa]|cavallo|cachorr[oa]|cavalo|hond|kat|paard|vet
"""
_OF_PERSON = re.compile(r"allerg|alergi|guide dog|assistance dog|therapy dog|service dog|blindenhund")
"""Beside an animal: a person's health all the same."""
_SUBJECTLESS = re.compile(
    r"^(?:[-*•] )?(?:came|started|stopped|joined|was|got|went|voted|took|had|been|taking|trying|diagnosed|turned"
    r"|converted|quit|tested|pleaded|spent|seit|wurde|war"
    r"|habe|bin|suis|soy|estoy|tengo|sono|ho|sou|tenho|ben|heb)\b"
)
"""`came out as bi last year`: the writer speaks of themselves."""
_ASKING = r"^(?:what|how|why|who|when|where|is|are|does|do|can|could|was ist|qu'est|que es|cos'e|o que)\b"


WORD = re.compile(r"[^\W\d_]+")


@cache
def _pattern(topic: Topic) -> re.Pattern[str]:
    words = _FACTS[topic].replace("\n", "").split("|")
    entries = [re.escape(word).replace(r"\*", r"[\w'-]*") for word in words]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(entries)})(?![\w])")


@cache
def _roles() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    person, work, animal = (
        re.compile(rf"(?<!\w)(?:{words.replace(chr(10), '')})(?!\w)") for words in (_PERSON, _WORK, _ANIMAL)
    )
    return person, work, animal


class _TopicGate(NamedTuple):
    """The longest words of a topic's entries: a text without one of them is not of the topic."""

    whole: frozenset[str]
    begun: frozenset[str]
    """The first letters of words with any ending."""


_LETTERS = 4


@cache
def _gates() -> dict[Topic, _TopicGate]:
    return {topic: _gate(words) for topic, words in _FACTS.items()}


def _gate(words: str) -> _TopicGate:
    whole, begun = set[str](), set[str]()
    for entry in words.replace("\n", "").split("|"):
        word = max(reversed(re.findall(r"[^\W\d_]+\*?", entry)), key=len)
        if word.endswith("*"):
            begun.add(word[:-1][:_LETTERS])
        else:
            whole.add(word)
    return _TopicGate(frozenset(whole), frozenset(begun))


@cache
def _any_gate() -> _TopicGate:
    gates = _gates().values()
    return _TopicGate(
        frozenset[str]().union(*(gate.whole for gate in gates)), frozenset[str]().union(*(gate.begun for gate in gates))
    )


def may_be_sensitive(words: Sequence[str], beginnings: Sequence[str]) -> bool:
    """Whether the words, in lower case and without accents, may be of a topic."""
    return _passes(_any_gate(), words, beginnings)


def beginnings_of(words: Sequence[str]) -> list[str]:
    """The first letters of each."""
    return [word[:_LETTERS] for word in words]


def _passes(gate: _TopicGate, words: Sequence[str], beginnings: Sequence[str]) -> bool:
    return not gate.whole.isdisjoint(words) or not gate.begun.isdisjoint(beginnings)


def folded(text: str) -> str:
    """Lower case, without accents."""
    text = text.replace("’", "'")
    if text.isascii():
        return text.lower()
    plain = normalize("NFKD", text.lower().replace("ß", "ss"))
    return "".join(letter for letter in plain if not combining(letter))


_NAME = re.compile(
    r"(?<!^)(?<![.!?]\s)\b[A-Z][a-z]+\b|^[A-Z][a-z]+ (?:is|was|has|had|hat|ist|est|a|es|tiene|e|ha|tem|heeft"
    r"|suffers|takes|voted|used|got)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")
_STATED = re.compile(r"^[\w /-]{3,24}:\s")
"""`Allergies: penicillin`."""


def topics(text: str) -> tuple[Topic, ...]:
    """The topics that the text tells of a person, in the order of the table."""
    _, work, animal = _roles()
    told_topics: set[Topic] = set()
    for sentence in _SENTENCE.split(text):
        plain = folded(sentence)
        touched = _touched(plain)
        if not touched or work.search(plain) or _is_question(plain) or not _tells_of_person(sentence, plain):
            continue
        if animal.search(plain) and not _OF_PERSON.search(plain):
            touched.discard("health")
        told_topics |= touched
    return tuple(topic for topic in _FACTS if topic in told_topics)


def _touched(plain: str) -> set[Topic]:
    words = WORD.findall(plain)
    beginnings = beginnings_of(words)
    return {
        topic for topic, gate in _gates().items() if _passes(gate, words, beginnings) and _pattern(topic).search(plain)
    }


def _is_question(plain: str) -> bool:
    return plain.rstrip().endswith("?") and re.search(_ASKING, plain) is not None


def _tells_of_person(sentence: str, plain: str) -> bool:
    """By a pronoun, a relation or a name; or as a note of few words, which is about whoever writes it."""
    if _roles()[0].search(plain) or _NAME.search(sentence):
        return True
    return bool(_SUBJECTLESS.search(plain) or _STATED.search(plain)) or len(plain.split()) <= 4
