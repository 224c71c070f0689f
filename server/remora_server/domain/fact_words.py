"""The closed lists of English words by which patterns tell one kind of fact from another."""

from __future__ import annotations

ONLY_ONE = frozenset(
    "wife husband spouse partner girlfriend boyfriend fiancé fiancée fiance fiancee mother mom mum father dad boss "
    "manager"
    " landlord landlady".split()
)
"""Relations of which a person has one at a time."""

KIN = ONLY_ONE | frozenset(
    "son daughter child kid baby sister brother twin sibling grandmother grandma grandfather grandpa granddaughter "
    "grandson aunt uncle"
    " niece nephew cousin stepson stepdaughter stepmother stepfather stepbrother stepsister mother-in-law father-in-law"
    " sister-in-law brother-in-law godson goddaughter friend roommate flatmate housemate neighbor neighbour "
    "colleague coworker"
    " teacher therapist doctor dentist assistant".split()
)

PETS = frozenset(
    "dog cat puppy kitten parrot hamster rabbit bunny horse pony goldfish turtle tortoise snake lizard budgie "
    "canary ferret"
    " guinea-pig guinea_pig pet".split()
)

RELATIONS = KIN | PETS

PLURALS = {
    "sons": "son",
    "daughters": "daughter",
    "children": "child",
    "kids": "kid",
    "sisters": "sister",
    "brothers": "brother",
    "twins": "twin",
    "siblings": "sibling",
    "nieces": "niece",
    "nephews": "nephew",
    "cousins": "cousin",
    "aunts": "aunt",
    "uncles": "uncle",
    "grandchildren": "grandchild",
    "grandsons": "grandson",
    "granddaughters": "granddaughter",
    "roommates": "roommate",
    "flatmates": "flatmate",
    "friends": "friend",
    "dogs": "dog",
    "cats": "cat",
    "puppies": "puppy",
    "kittens": "kitten",
    "parrots": "parrot",
    "hamsters": "hamster",
    "rabbits": "rabbit",
    "bunnies": "bunny",
    "horses": "horse",
    "ponies": "pony",
    "turtles": "turtle",
    "budgies": "budgie",
    "pets": "pet",
}

POSSESSIONS = frozenset(
    "car van truck motorbike motorcycle scooter bike bicycle boat caravan camper house flat apartment cottage cabin "
    "garden balcony"
    " piano guitar violin cello drum-kit laptop tablet phone computer console camera telescope printer farm "
    "allotment greenhouse"
    " tesla iphone android macbook ipad chromebook kindle".split()
)
"""What "I have" makes a possession of; "I own" takes anything."""

CONDITIONS = frozenset(
    "asthma diabetes epilepsy arthritis migraines migraine anemia anaemia eczema psoriasis insomnia adhd autism "
    "dyslexia hypertension"
    " hypothyroidism endometriosis fibromyalgia celiac coeliac crohn's lupus scoliosis tinnitus ibs pcos glaucoma gout"
    " rosacea sciatica".split()
)

DIETS = frozenset(
    "vegetarian vegan pescatarian flexitarian omnivore omnivorous fruitarian carnivore lacto-vegetarian".split()
)
"""Who keeps one of these keeps no other."""

REGIMES = frozenset(
    "halal kosher gluten-free dairy-free sugar-free lactose-free low-carb low-fat low-sodium keto ketogenic paleo "
    "plant-based"
    " mediterranean organic raw nut-free".split()
)
"""Of these a person may keep several, beside a diet."""

LANGUAGES = frozenset(
    "afrikaans albanian amharic arabic armenian azerbaijani basque bengali bosnian breton bulgarian burmese "
    "cantonese catalan"
    " cebuano chinese croatian czech danish dutch english esperanto estonian farsi filipino finnish flemish french "
    "galician georgian"
    " german greek gujarati hausa hebrew hindi hungarian icelandic igbo indonesian irish italian japanese javanese "
    "kannada kazakh"
    " khmer korean kurdish lao latin latvian lithuanian luxembourgish macedonian malay malayalam maltese mandarin "
    "maori marathi"
    " mongolian nepali norwegian pashto persian polish portuguese punjabi quechua romanian romansh russian samoan "
    "sanskrit serbian"
    " sinhala slovak slovene slovenian somali spanish swahili swedish tagalog tamil tatar telugu thai tibetan "
    "turkish ukrainian"
    " urdu uzbek vietnamese welsh wolof xhosa yiddish yoruba zulu esperanto".split()
)

DEMONYMS = LANGUAGES | frozenset(
    "american british scottish australian canadian brazilian mexican argentinian argentine chilean colombian "
    "peruvian cuban egyptian"
    " moroccan tunisian algerian nigerian kenyan ghanaian ethiopian african asian european indian pakistani "
    "bangladeshi iranian iraqi"
    " israeli lebanese syrian saudi austrian swiss belgian taiwanese singaporean malaysian catholic christian "
    "protestant"
    " jewish muslim hindu buddhist sikh mormon lutheran orthodox republican democrat bavarian sicilian parisian "
    "londoner berliner texan californian".split()
)
"""What a capital letter does not make a name."""

OCCUPATIONS = frozenset(
    "accountant actor actress administrator analyst anesthesiologist apprentice archaeologist architect archivist "
    "artist astronomer"
    " attorney auditor author baker banker barber barista bartender beautician biologist bookkeeper bookseller "
    "bricklayer broker"
    " builder butcher carer caretaker carpenter cashier ceo cfo chef chemist cleaner clerk coach composer conductor "
    "consultant"
    " contractor cook copywriter counselor counsellor courier cto curator dancer dentist dermatologist designer "
    "detective developer"
    " dietitian diplomat director doctor driver ecologist economist editor electrician engineer entrepreneur "
    "estate-agent farmer"
    " filmmaker firefighter fisherman florist founder co-founder freelancer gardener geologist geographer glazier "
    "goldsmith"
    " hairdresser headteacher historian illustrator instructor interpreter inspector janitor jeweler jeweller "
    "joiner journalist"
    " judge lawyer lecturer librarian lifeguard linguist locksmith logistician machinist magistrate manager "
    "marketer mason"
    " mathematician mechanic meteorologist microbiologist midwife miner minister musician nanny neurologist notary "
    "novelist nurse"
    " nutritionist oceanographer optician optometrist painter paralegal paramedic pastor pediatrician paediatrician "
    "pharmacist"
    " philosopher photographer physician physicist physiotherapist pianist pilot plumber podiatrist poet policeman "
    "policewoman"
    " politician porter postman potter priest principal producer professor programmer proofreader psychiatrist "
    "psychologist"
    " psychotherapist publisher radiographer radiologist ranger realtor receptionist recruiter reporter researcher "
    "roofer sailor"
    " salesman salesperson saleswoman scientist sculptor seamstress secretary shepherd singer social-worker "
    "sociologist soldier"
    " solicitor sommelier statistician stewardess steward strategist student surgeon surveyor tailor teacher "
    "technician therapist"
    " trader trainer trainee translator tutor undertaker upholsterer vet veterinarian violinist waiter waitress "
    "watchmaker weaver"
    " welder winemaker worker writer zoologist".split()
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
    "van von der den de del della degli di da do dos das du la le el al bin ibn ben bint ten ter zu zur y e af av "
    "ap".split()
)
"""Words in lower case within a person's name, before one with a capital letter."""

PLACE_PARTICLES = PARTICLES | frozenset("of the upon am an sur sous les in-the".split())
EMPLOYER_PARTICLES = PARTICLES | frozenset("of the and & for".split())

ARTICLES = frozenset("a an the".split())

UNSAID = frozenset(
    "it this that these those them him her you me us myself yourself himself herself one ones my your his their our "
    "its what how when"
    " where which who why whatever if not no nothing none nobody everything everyone anything something someone "
    "everybody some any"
    " all each both either neither here there so such more less much many lots being having".split()
)
"""A phrase that begins so names nothing by itself."""

STOPS = frozenset(
    "with because since when where which who whom whose that but although though while until till as so if after before"
    " now currently nowadays already again too also together alone despite due thanks near close next outside these "
    "right"
    " especially particularly even just not than more most better best unless whenever every very instead rather"
    " here there anymore or like for".split()
)
"""Where a phrase ends."""

MORE_STOPS = frozenset(
    "at in on from by last this two three a an the my our and last-year full-time part-time under remotely".split()
)
"""Where a place or an employer also ends."""
