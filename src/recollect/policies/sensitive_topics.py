"""What is told of a person's health, religion, politics, sexuality, ethnicity, union and crimes.

A text is of a topic where a sentence has a word of the topic and says it of a person: not a doctor's job, not a church
as a building. Words are written without accents, in seven languages; `*` stands for any ending.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal
from unicodedata import combining, normalize

Topic = Literal["health", "religion", "politics", "sexuality", "ethnicity", "union", "crime"]

_FACTS: dict[Topic, str] = {
    "health": """
allergic to|allergies|allergy|diabetic|diabetes|asthma|asthmatic|epilep*|migraine*|depressed|depression|anxiety disorder
|panic attack*|panic disorder|bipolar|schizophren*|autis*|adhd|asperger*|ptsd|ocd|dyslexi*|anorexi*|bulimi*|eating disorder|cancer
|leukemia|leukaemia|lymphoma|melanoma|tumor|tumour|chemo*|radiotherapy|hiv|hepatitis|tuberculosis|covid|lupus|crohn*
|colitis|celiac|coeliac|gluten intoleran*|lactose intoleran*|fibromyalgia|arthritis|osteoporosis|multiple sclerosis
|parkinson*|alzheimer*|dementia|stroke|heart attack|heart condition|heart disease|pacemaker|high blood pressure|blood pressure
|hypertension|cholesterol|thyroid|hypothyroid*|insulin|metformin|antidepress*|sertraline|prozac|zoloft|lithium|ritalin
|statins|warfarin|blood thinner*|medication|prescribed|pregnan*|miscarr*|ivf|menopaus*|endometriosis|pcos|infertil*
|wheelchair|disabled|disability|deaf|blind in|hearing aid*|prosthe*|amput*|dialysis|kidney failure|kidney stone*|transplant
|surgery|operated on|operation on|hospitali*ed|diagnosed|diagnosis|in rehab|recovering alcoholic|alcoholic|addict*|sober|in therapy
|therapist|psychiatrist|burnout|burned out|chronic*|insomnia|sleep apnea|eczema|psoriasis|sciatica|slipped disc|herniated
|broke my|broken leg|broken arm|concussion|vaccinated|suicid*|self-harm*|overdose*|herpes|chlamydia|syphilis|gout|anemi*|anaemi*
|epipen|inhaler|abortion|hernia|seizure*|vertigo|tinnitus|long covid|sickle cell|cystic fibrosis|down syndrome
|allergisch|allergie*|unvertraglichkeit|intoleranz|diabetik*|zuckerkrank|asthmatiker*|depression*|depressiv|angststorung*
|krebs|brustkrebs|schlaganfall|herzinfarkt|herzfehler|bluthochdruck|blutdruck|schilddruse*|schwanger*|fehlgeburt|schwerhorig
|gehorlos|rollstuhl|behinder*|chronisch*|diagnostiziert|operiert|bandscheib*|medikament*|tabletten|therapie|krank
|erkrankt|krankheit|suchtig|alkoholiker*|trockener alkoholiker|rheuma|zoliakie|laktoseintoleran*|demenz|herzschrittmacher|insulinpflichtig
|allergique*|diabetique*|asthmatique|depressif|depressive|enceinte|fausse couche|avc|infarctus|hypertendu*|tension arterielle
|handicap*|fauteuil roulant|sourd|sourde|aveugle|opere|operee|diagnostique*|traitement|maladie|malade|sclerose*|epilep*|migraines
|sous antidepresseurs|alcoolique|coeliaque|intolerant*|seropositi*
|alergic*|alergia*|diabetic*|asmatic*|asma|depresion|ansiedad|embarazada|aborto|hipertens*|tension alta|infarto|ictus
|discapacidad|silla de ruedas|sordo|sorda|operaron|operad*|diagnostic*|enferm*|enfermedad|epilep*|migrana*|celiac*|tratamiento
|medicacion|pastillas|alcoholico*|intolerante a|tiroides|marcapasos|seropositiv*|quimio*
|allergic*|allergia|diabete|asma|depressione|ansia|incinta|aborto|ipertes*|pressione alta|infarto|ictus|disabil*|sedia a rotelle
|sordo|operat*|diagnosticat*|malat*|malattia|epiletti*|emicrani*|celiac*|terapia|farmac*|alcolista|intollerant*|tiroide|tumore|cancro
|sieropositiv*|chemio*
|gravida|grav*ida|depressao|ansiedade|pressao alta|avc|deficien*|cadeira de rodas|surdo|surda|doenca|doente
|enxaqueca*|remedio*|medicacao|alcoolatra|tireoide|hipotireoidismo|cirurgia|cancer de
|allergie|suikerziekte|astma|depressie|depressief|angststoornis|kanker|borstkanker|beroerte|hartaanval|hartinfarct
|hoge bloeddruk|bloeddruk|schildklier|zwanger|miskraam|rolstoel|gehandicapt|doof|slechthorend|geopereerd|gediagnosticeerd|ziekte
|medicijn*|verslaafd|alcoholist|coeliakie|lactose-intoleran*|dementie|chronisch|overspannen|burn-out|hernia""",
    "religion": """
muslim*|christian|catholic|protestant|orthodox jew*|jewish|jew|buddhist|hindu|sikh|mormon|jehovah*|atheist|agnostic|baptist|lutheran
|methodist|evangelical|anglican|quaker|pentecostal|wiccan|pagan|bahai|born-again|born again|converted to|baptized|baptised
|bar mitzvah|bat mitzvah|practising|practicing|kosher|halal|ramadan|sabbath|shabbat|devout|believe in god|pray|prays|prays|praying|synagogue
|mosque|church every|go to church|goes to church|religious|salah|hijab|lent|my faith|her faith|his faith|left the church|parishioner
|muslimin|moslem|christ|christin|katholi*|evangelisch|judisch|jude|judin|buddhistin|atheistin|konfession*|getauft|konvertiert
|glaubig*|aus der kirche ausgetreten|ungetauft|betet|bete|zeuge jehovas|zeugin jehovas|hinduistisch
|musulman*|chretien*|catholique*|protestante|juif|juive|bouddhiste|athee|croyant*|pratiquant*|bapteme|baptise*|prie|converti*|temoin de jehovah
|catolic*|cristian*|judi*|budista|ate*|creyente|practicante|bautiz*|rezo|reza|convirt*|testigo de jehova|evangelic*
|cattolic*|musulman*|ebre*|buddista|credente|praticante|battezzat*|prega|prego|convertit*|testimone di geova
|catolic*|cristao|crista|muculman*|judeu|judia|ateu|ateia|crente|batizad*|rezo|ora toda|candomble|umbanda|espirita|convertid*
|moslim*|christen|katholiek|gereformeerd|protestants|joods|boeddhist*|atheist*|gelovig|bekeerd|gedoopt|bidt|hindoe""",
    "politics": """
voted for|vote for|votes for|voting for|republican|democrat|conservative voter|labour voter|tory|socialist|communist|anarchist|libertarian
|left-wing|right-wing|leftist|far-right|far-left|green party|party member|member of the * party|campaigned for|canvass*|marxist
|trump supporter|maga|pro-choice|pro-life|monarchist|brexiteer|politically|political views|political activist|activist|liberal
|wahlt|gewahlt|wahle|wahler*|spd|cdu|csu|afd|fdp|die grunen|linke|parteimitglied|kommunist*|sozialist*|sozialdemokrat*|rechtsextrem*
|ortsverein|politisch
|vote pour|vote a gauche|a vote|a gauche|de gauche|de droite|extreme droite|militant*|communiste|socialiste|adherent* au parti|encarte*
|macroniste|gaulliste|rassemblement national|ecologiste
|vot*|de izquierdas|de izquierda|de derechas|de derecha|comunista|socialista|afiliad* al|milit*|psoe|vox|podemos|independentista
|votat*|di sinistra|di destra|comunista|iscritt* al|tesserat*|leghista|pd|fratelli d'italia|anarchic*
|votei|votou|de esquerda|de direita|petista|bolsonarista|filiad* a*|lulista
|stemt op|stem op|stemde op|gestemd|links|rechts|vvd|pvda|groenlinks|pvv|d66|partijlid|lid van de partij""",
    "sexuality": """
gay|lesbian|bisexual|bi|pansexual|asexual|queer|homosexual|heterosexual|straight|transgender|trans|non-binary|nonbinary|came out|coming out
|transition*|polyamor*|lgbt*|demisexual|closeted|in the closet|same-sex|attracted to men|attracted to women|sex life|nb|hrt
|schwul*|lesbisch*|bisexuell|homosexuell|geoutet|transfrau|transmann|asexuell|pansexuell|nichtbinar
|homosexuel*|lesbienne*|bisexuel*|coming out|transgenre|asexuel*|pansexuel*|non binaire|homo
|lesbiana|homosexual|transexual|salio del armario|asexual|no binari*|gai|sali del armario
|lesbica|omosessual*|bisessual*|asessual*|non binari*
|lesbica|homossexual|bissexual|transexual|assexual|nao-binari*|saiu do armario|assumiu
|lesbienne|homoseksueel|biseksueel|uit de kast|aseksueel|non-binair""",
    "ethnicity": """
ethnic*|african american|african-american|black woman|black man|black|latino|latina|latinx|hispanic|roma|romani|sinti|gypsy|kurd|kurdish|native american
|indigenous|aboriginal|maori|first nations|cherokee|navajo|mixed race|mixed-race|biracial|of * descent|of * origin|ancestry|my roots|heritage|half *|person of color|person of colour|white man|white woman|caucasian
|asian american|ashkenazi|sephardic|afro-*|sami|descended from|uyghur|tamil|ethnically|dalit|caste
|turkischer abstammung|abstammung|wurzeln|migrationshintergrund|schwarz|schwarze|kurde|kurdin|kurdisch|roma-familie|sinto|sintiza|afrodeutsch*|herkunft
|d'origine|origines|metis*|noir|noire|kabyle|berbere|rom|tsigane|arabe|kurde|antillais*
|gitan*|de origen|ascendencia|raices|mestiz*|indigena|afrodescendiente|negr*|mapuche|quechua
|di origine|origini|rom|mulatt*|meticci*|nero|nera
|negr*|pard*|pret*|indigena|mestic*|ascendencia|descendente|quilombola|de origem
|afkomst|van * afkomst|surinaams*|marokkaanse|hindoestaans*|molukse*|donkere huid|zwart|roma-""",
    "union": """
union member|member of the union|trade union|labor union|labour union|union rep|shop steward|unionized|unionised|union dues|in the union|our union|my union|the union|joined the * union
|teamster*|unison|seiu|unite member|gmb|union card|on strike|union organizer|union organiser|union delegate|union steward
|gewerkschaft*|betriebsrat|betriebsratin|ver.di|verdi|ig metall|vertrauensmann
|syndicat*|syndique*|syndicaliste|cgt|cfdt|delegue* syndical*|fo depuis
|sindica*|afiliad* a ccoo|ccoo|ugt|enlace sindical
|sindacat*|cgil|cisl|uil|iscritt* alla cgil|rsu
|sindicalizad*|sindicat*|sindicato|cgtp|cut
|vakbond*|fnv|cnv|ondernemingsraad|kaderlid|abvv""",
    "crime": """
convicted|conviction|felony|felon|misdemeanor|misdemeanour|arrested|in prison|in jail|went to jail|went to prison|prison|jail|served time|served * years|parole|probation
|criminal record|dui|dwi|shoplift*|burglary|charged with|indicted|sentenced|on bail|juvenile record|caught stealing|fraud conviction|restraining order
|suspended sentence|guilty of|pleaded guilty|pled guilty|assault|house arrest|community service|ex-con|ankle monitor|caution for|embezzl*|police record|drunk driving
|vorbestraft|verurteilt|verhaftet|gefangnis|im knast|knast|bewahrung|vorstrafe*|strafbefehl|festgenommen|trunkenheit am steuer|diebstahls|angeklagt|untersuchungshaft|haft
|condamne*|prison|arrete*|casier judiciaire|sursis|garde a vue|mis en examen|mise en examen|bracelet electronique|incarcere*
|condenad*|carcel|detenid*|antecedentes penales|antecedentes|libertad condicional|prision|arrestad*|imputad*
|condannat*|carcere|arrestat*|precedenti penali|liberta vigilata|domiciliari|galera|fedina penale|patteggiat*|denunciat*
|pres*|cadeia|condenad*|ficha criminal|antecedentes criminais|liberdade condicional|prisao|tornozeleira
|veroordeeld|gevangenis|gearresteerd|strafblad|voorwaardelijke|taakstraf|aangehouden|opgepakt|in de cel|reclassering""",
}

_PERSON = r"""
i|i'm|im|i've|ive|my|me|mine|myself|we|our|us|he|she|he's|she's|his|her|him|they|their|user|patient|mum|mom|mother|dad|father|brother|sister|son
|daughter|wife|husband|partner|girlfriend|boyfriend|friend|uncle|aunt|cousin|grand\w+|grandma|grandpa|neighbo\w+|colleague|boss|kid|child|baby|nephew
|niece|fiance\w*|roommate|flatmate|coworker|manager|ex
|ich|mein\w*|mir|mich|wir|unser\w*|er|sie|sein\w*|ihr\w*|mutter|mama|vater|papa|bruder|schwester|sohn|tochter|frau|mann|oma|opa|freund\w*|onkel|tante
|kollege|kollegin|nachbar\w*|chef|chefin
|je|j'ai|j'\w+|mon|ma|mes|moi|nous|notre|il|elle|son|sa|ses|mere|pere|frere|soeur|fils|fille|mari|femme|copain|copine|ami|amie|oncle|tante|cousin\w*
|voisin\w*|collegue
|yo|soy|tengo|mi|mis|me|nosotros|nuestr\w+|el|ella|su|madre|padre|hermano|hermana|hijo|hija|marido|esposa|esposo|mujer|abuel\w+|novi\w+|amig\w+|tio|tia
|vecin\w+|jef\w|estoy|fui|voto|primo|prima
|io|sono|ho|mio|mia|mie|miei|noi|nostr\w+|lui|lei|suo|sua|fratello|sorella|figlio|figlia|marito|moglie|nonn\w|amic\w+|zio|zia|cugin\w|collega|mi|mamma|papa|babbo
|eu|sou|tenho|meu|minha|meus|minhas|nos|nosso|nossa|ele|ela|seu|sua|dele|dela|mae|pai|irmao|irma|filho|filha|avo|namorad\w|vizinh\w|estou|fui|votei|chefe
|ik|mijn|me|wij|we|ons|onze|hij|zij|ze|haar|moeder|vader|broer|zus|zoon|dochter|man|vrouw|vriend\w*|opa|oma|oom|tante|collega|buurman|buurvrouw|heb|ben
"""
_WORK = r"""
(?:works?|worked|working|job|career|employed|intern\w*|volunteers?) (?:as|at|for|in|on|with)|researcher|research\w*|thesis|dissertation|lecture\w*|startup|start-up
|article|podcast|documentary|novel|movie|film|museum|conference|charity|fundrais\w+|nonprofit|ward|professor|studies|studying|study|course|textbook|specialist
|dataset|customers?|clients?|project|software|app for|essay|exam|architecture|building|tourist|concert|wedding venue|opposite the|next to the|near the|behind the
|arbeite\w* (?:als|in|bei|an|fur)|arbeitet|forsch\w+|doktorarbeit|studier\w+|artikel|neben der|gegenuber|projekt
|travaille (?:comme|dans|a|sur|chez|pour)|recherche|these|etudie|a cote de|en face|projet
|trabaj\w+ (?:en|de|como|para|con)|investig\w+|tesis|estudi\w+|al lado de|enfrente|proyecto
|lavor\w+ (?:in|come|per|a|al|su|con)|ricerc\w+|tesi|studi\w+|accanto|di fronte|progetto
|trabalh\w+ (?:em|no|na|como|para|com)|pesquis\w+|tese|estud\w+|ao lado|em frente|projeto
|werk\w* (?:als|bij|in|aan|voor)|onderzoek\w*|scriptie|studeer\w*|naast de|tegenover
"""
_NEGATED = r"^(?:what|how|why|who|when|where|is|are|does|do|can|could|was ist|qu'est|que es|cos'e|o que)\b"


@cache
def _patterns() -> dict[Topic, re.Pattern[str]]:
    return {topic: _alternatives(words.replace("\n", "")) for topic, words in _FACTS.items()}


def _alternatives(words: str) -> re.Pattern[str]:
    entries = [re.escape(word.strip()).replace(r"\*", r"[\w'-]*") for word in words.split("|")]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(entries)})(?![\w])")


@cache
def _roles() -> tuple[re.Pattern[str], re.Pattern[str]]:
    person, work = (words.replace("\n", "") for words in (_PERSON, _WORK))
    return re.compile(rf"(?<!\w)(?:{person})(?!\w)"), re.compile(rf"(?<!\w)(?:{work})(?!\w)")


@cache
def _beginnings() -> frozenset[str]:
    """The first letters of every word: a text without them is of no topic."""
    firsts = [entry.strip().split(" ")[0].split("-")[0].rstrip("*") for words in _FACTS.values() for entry in words.split("|")]
    return frozenset(first[:4] for first in firsts)


def may_be_sensitive(words: list[str]) -> bool:
    """Whether the words, in lower case and without accents, may be of a topic."""
    return not _beginnings().isdisjoint([word[:4] for word in words])


def folded(text: str) -> str:
    """Lower case, without accents."""
    text = text.replace("’", "'")
    if text.isascii():
        return text.lower()
    plain = normalize("NFKD", text.lower().replace("ß", "ss"))
    return "".join(letter for letter in plain if not combining(letter))


_NAME = re.compile(r"(?<!^)(?<![.!?]\s)\b[A-Z][a-z]+\b|^[A-Z][a-z]+ (?:is|was|has|had|hat|ist|est|a|es|tiene|e|ha|tem|heeft|suffers|takes|voted|used|got)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")
_STATED = re.compile(r"^[\w /-]{3,24}:\s")
"""`Allergies: penicillin`."""


def topics(text: str) -> tuple[Topic, ...]:
    """The topics that the text tells of a person, in the order of the table."""
    person, work = _roles()
    found: set[Topic] = set()
    for sentence in _SENTENCE.split(text):
        plain = folded(sentence)
        names = None
        for topic, pattern in _patterns().items():
            if topic in found or not pattern.search(plain) or work.search(plain):
                continue
            if names is None:
                names = person.search(plain) or _NAME.search(sentence) or _STATED.search(plain) or len(plain.split()) <= 4
            if names and not (plain.rstrip().endswith("?") and re.search(_NEGATED, plain)):
                found.add(topic)
    return tuple(topic for topic in _FACTS if topic in found)
