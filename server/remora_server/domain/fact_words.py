"""The closed lists of English words by which patterns tell one kind of fact from another."""

from __future__ import annotations

ONLY_ONE = frozenset(
    "wife husband spouse partner girlfriend boyfriend fiancé fiancée fiance fiancee mother mom mum father dad"
    " boss manager landlord landlady".split()
)
"""Relations of which a person has one at a time."""

KIN = ONLY_ONE | frozenset(
    "son daughter child kid baby sister brother twin sibling grandmother grandma grandfather grandpa"
    " granddaughter grandson aunt uncle niece nephew cousin grandchild stepson stepdaughter stepmother"
    " stepfather stepbrother stepsister mother-in-law father-in-law sister-in-law brother-in-law godson"
    " goddaughter friend roommate flatmate housemate neighbor neighbour colleague coworker teacher therapist"
    " doctor dentist assistant".split()
)

PETS = frozenset(
    "dog cat puppy kitten parrot hamster rabbit bunny horse pony goldfish turtle tortoise snake lizard budgie"
    " canary ferret pet".split()
)

RELATIONS = KIN | PETS

PLURALS = {f"{relation}s": relation for relation in RELATIONS} | {
    "bunnies": "bunny",
    "budgies": "budgie",
    "canaries": "canary",
    "children": "child",
    "grandchildren": "grandchild",
    "grandkids": "grandchild",
    "ponies": "pony",
    "puppies": "puppy",
    "wives": "wife",
}
"""The relation of which a word is the plural."""

POSSESSIONS = frozenset(
    "car van truck motorbike motorcycle scooter bike bicycle boat caravan camper house flat apartment cottage"
    " cabin garden balcony piano guitar violin cello drum-kit laptop tablet phone computer console camera"
    " telescope printer farm allotment greenhouse tesla iphone android macbook ipad chromebook kindle".split()
)
"""What "I have" makes a possession of; "I own" takes anything."""

CONDITIONS = frozenset(
    "asthma diabetes epilepsy arthritis migraines migraine anemia anaemia eczema psoriasis insomnia adhd autism"
    " dyslexia hypertension hypothyroidism endometriosis fibromyalgia celiac coeliac crohn's lupus scoliosis"
    " tinnitus ibs pcos glaucoma gout rosacea sciatica".split()
)

SUFFERERS = frozenset(
    "diabetic celiac coeliac asthmatic epileptic dyslexic autistic colorblind colourblind deaf anemic anaemic".split()
)
"""What "am" makes a condition of."""

DIETS = frozenset(
    "vegetarian vegan pescatarian flexitarian omnivore omnivorous fruitarian carnivore lacto-vegetarian".split()
)
"""Who keeps one of these keeps no other."""

REGIMES = frozenset(
    "halal kosher gluten-free dairy-free sugar-free lactose-free low-carb low-fat low-sodium keto ketogenic"
    " paleo plant-based mediterranean nut-free".split()
)
"""Of these a person may keep several, beside a diet."""

LANGUAGES = frozenset(
    "afrikaans albanian amharic arabic armenian azerbaijani basque bengali bosnian breton bulgarian burmese"
    " cantonese catalan cebuano chinese croatian czech danish dutch english esperanto estonian farsi filipino"
    " finnish flemish french galician georgian german greek gujarati hausa hebrew hindi hungarian icelandic igbo"
    " indonesian irish italian japanese javanese kannada kazakh khmer korean kurdish lao latin latvian"
    " lithuanian luxembourgish macedonian malay malayalam maltese mandarin maori marathi mongolian nepali"
    " norwegian pashto persian polish portuguese punjabi quechua romanian romansh russian samoan sanskrit"
    " serbian sinhala slovak slovene slovenian somali spanish swahili swedish tagalog tamil tatar telugu thai"
    " tibetan turkish ukrainian urdu uzbek vietnamese welsh wolof xhosa yiddish yoruba zulu".split()
)

OCCUPATIONS = frozenset(
    "accountant actor actress administrator analyst anesthesiologist apprentice archaeologist architect"
    " archivist artist assistant associate astronomer attorney auditor author baker banker barber barista"
    " bartender beautician beekeeper biologist bishop blacksmith bookbinder bookkeeper bookseller brewer"
    " bricklayer broker builder butcher carer caretaker carpenter cartographer cashier caterer ceo cfo chef"
    " chemist chiropractor choreographer cinematographer cio cleaner clerk cmo co-founder coach composer"
    " conductor consultant contractor coo cook coordinator copywriter counsellor counselor courier cto curator"
    " dancer dentist dermatologist designer detective developer dietitian diplomat director dispatcher dj doctor"
    " driver ecologist economist editor electrician engineer entrepreneur estate-agent executive farmer"
    " filmmaker firefighter fisherman florist founder freelancer gardener geographer geologist glazier goldsmith"
    " guard guide hairdresser handyman headteacher historian housekeeper hygienist illustrator imam inspector"
    " instructor intern interpreter janitor jeweler jeweller joiner journalist judge landscaper lawyer lead"
    " lecturer librarian lifeguard linguist locksmith logistician machinist magistrate manager marketer mason"
    " mathematician mechanic meteorologist microbiologist midwife miner minister monk musician nanny neurologist"
    " notary novelist nun nurse nutritionist oceanographer officer operator optician optometrist orthodontist"
    " osteopath paediatrician painter paralegal paramedic pastor pathologist pediatrician pharmacist philosopher"
    " photographer physician physicist physiotherapist pianist pilot planner plasterer plumber podiatrist poet"
    " policeman policewoman politician porter postdoc postman potter president priest principal producer"
    " professor programmer proofreader psychiatrist psychologist psychotherapist publisher rabbi radiographer"
    " radiologist rancher ranger realtor receptionist recruiter referee reporter researcher restaurateur roofer"
    " sailor salesman salesperson saleswoman scientist sculptor seamstress secretary shepherd singer"
    " social-worker sociologist soldier solicitor sommelier specialist statistician steward stewardess"
    " stonemason strategist student stylist supervisor surgeon surveyor sysadmin tailor teacher technician"
    " technologist therapist tiler toolmaker trader trainee trainer translator trucker tuner tutor undertaker"
    " upholsterer vet veterinarian vicar videographer violinist vp waiter waitress warden watchmaker weaver"
    " welder winemaker worker writer zookeeper zoologist".split()
)
"""The last word of "I am a ..." that makes it an occupation."""

NO_LONGER = frozenset(
    "former retired ex aspiring amateur hobby would-be wannabe future failed lapsed prospective".split()
)

MONTHS = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
)
FEASTS = r"(?:Christmas(?: Eve| Day)?|New Year's (?:Eve|Day)|Halloween|Valentine's Day|April Fools' Day|Boxing Day)\b"

PARTICLES = frozenset(
    "van von der den de del della degli di da do dos das du la le el al bin ibn ben bint ten ter zu zur y e af"
    " av ap".split()
)
"""Words in lower case within a person's name, before one with a capital letter."""
PLACE_PARTICLES = PARTICLES | frozenset("of the upon am an sur sous les".split())
EMPLOYER_PARTICLES = PARTICLES | frozenset("of the and & for".split())
ARTICLES = frozenset("a an the".split())

UNSAID = frozenset(
    "it this that these those them him her you me us myself yourself himself herself one ones my your his their"
    " our its what how when where which who why whatever if not no nothing none nobody everything everyone"
    " anything something someone everybody some any all each both either neither here there so such more less"
    " much many lots".split()
)
"""A phrase that begins so names nothing by itself."""
ADDRESSED = frozenset("you your yours it".split())
"""A phrase with one of these is about this talk."""
CLAUSES = frozenset(
    "because since when where which who whom whose that but although though while until till so if unless"
    " whenever after before now currently nowadays again too also these despite due thanks especially"
    " particularly not than more most every anymore instead rather".split()
)
"""Where a phrase about an action ends."""
STOPS = CLAUSES | frozenset(
    "with as already together alone near close next outside right even just better best very here there or like"
    " for last".split()
)
"""Where another phrase ends."""
LIKED_STOPS = STOPS - {"with"}
MORE_STOPS = frozenset(
    "at in on from by called named this two three a an the my our and full-time part-time under remotely".split()
)
"""Where a place or an employer also ends."""
TRAILING = frozenset(
    "now too again today a an the lot much so very well really and or in at on to of is are always myself"
    " ourselves obviously mostly lately recently actually please thanks honestly personally".split()
)
"""What no phrase ends with."""

NO_NAMES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august"
    " september october november december ok okay pm am mr mrs ceo cto cfo it hr qa ux ui pr asap vp phd a an"
    " the and but tv usb pc".split()
)
HEADLINE = frozenset("a an the for to in at with on my your is looking trying going".split())
"""Capital letters before these are those of a headline."""

SETTLEMENTS = frozenset(
    "town village city suburb suburbs farm island county countryside hamlet outskirts coast mountains north"
    " south east west".split()
)
NO_PLACES = frozenset(
    "fear peace hope harmony poverty sin luxury denial pain comfort general total person private moment past"
    " present future chaos hell heaven bed love house home flat apartment room summer winter spring autumn fall"
    " hospital world bubble shoes tears family families money time times".split()
)
TECHNOLOGIES = frozenset(
    "python rust go golang java kotlin typescript javascript node react angular vue svelte django rails laravel"
    " postgres postgresql mysql mariadb sqlite mongodb redis kafka kubernetes docker podman terraform ansible"
    " aws azure gcp slack teams zoom discord notion linear jira github gitlab bitbucket linux windows mac macos"
    " ubuntu debian fedora ios android swift scala elixir haskell spark snowflake bigquery chrome firefox safari"
    " gmail outlook vim emacs vscode finance sales marketing accounting support engineering hr it management".split()
)
"""What people also say that they moved to."""
NO_EMPLOYERS = frozenset(
    "home night nights living free peanuts scale capacity length client clients customer customers people"
    " companies cash weekend promotion raise weekends least first once last work change fun money food desk pace"
    " computer laptop distance speed level times best years ease odds height heights dawn dusk noon exposure"
    " tips".split()
)
SERVICES = frozenset(
    "twitter facebook instagram reddit linkedin discord slack zoom netflix spotify tiktok mastodon duolingo"
    " tinder whatsapp telegram github youtube".split()
)
"""What people join without working there."""
NO_JOBS = frozenset("team group charm couple expected unit whole treat rule pair hobby favor favour result".split())
VALUED = frozenset(
    "good great bad terrible awful slow fast decent lousy keen avid passionate big careful horrible poor"
    " excellent casual heavy huge mediocre natural born better best worst fine confident nervous safe lazy messy"
    " home".split()
)
"""Before an occupation, these say how somebody does something."""
NO_FIELDS = frozenset(
    "shifts teams pairs silence bed person progress town secret groups vain private general tandem parallel"
    " peace spurts bursts public batches".split()
)
OF_THE_TALK = frozenset(
    "one ones suggestion suggestions idea ideas approach answer answers proposal explanation response option"
    " options version draft question questions snippet code function output error format layout solution change"
    " changes feature features plan".split()
)
"""What somebody likes of a talk."""
NOT_PLAYED = frozenset(
    "safe fair hard dumb dead nice hooky favorites along tricks fetch video videos music audio song songs clip"
    " clips file files sound sounds record records god detective".split()
)
NOT_OWNED = frozenset("mistake mistakes error decision problem fault bargain rights nuts crazy mad insane".split())
NOT_EATERS = frozenset("restaurant restaurants chef cook cookbook food recipe recipes person meal meals".split())
OWN = RELATIONS - frozenset("friend doctor dentist teacher colleague coworker assistant therapist".split())
"""Relatives and pets that are worth knowing without a name."""
NATIONALITIES = frozenset(
    "albanian american argentinian argentine armenian australian austrian bangladeshi belgian bolivian bosnian"
    " brazilian british bulgarian cambodian cameroonian canadian chilean chinese colombian croatian cuban"
    " cypriot czech danish dutch ecuadorian egyptian english estonian ethiopian filipino finnish french georgian"
    " german ghanaian greek guatemalan haitian hungarian icelandic indian indonesian iranian iraqi irish israeli"
    " italian jamaican japanese jordanian kazakh kenyan korean lebanese libyan lithuanian latvian luxembourgish"
    " macedonian malaysian maltese mexican moldovan mongolian moroccan nepali nigerian norwegian pakistani"
    " palestinian peruvian polish portuguese romanian russian rwandan scottish senegalese serbian singaporean"
    " slovak slovenian somali spanish sudanese swedish swiss syrian taiwanese tanzanian thai tunisian turkish"
    " ugandan ukrainian uruguayan venezuelan vietnamese welsh zambian zimbabwean".split()
)
DEMONYMS = (
    LANGUAGES
    | NATIONALITIES
    | frozenset(
        "african asian european saudi catholic christian protestant jewish muslim hindu buddhist sikh mormon"
        " lutheran orthodox republican democrat bavarian sicilian parisian londoner berliner texan californian".split()
    )
)
"""What a capital letter does not make a name."""
