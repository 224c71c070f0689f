//! English words whose forms share no stem ("went" and "go"): the verbs and plurals that people use every day.
//!
//! Forms that are as often another word are left out ("rose", "bit", "leaves"), and those that are stop words.

/// Each form with the word that it is a form of.
pub(super) fn irregular_forms() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.lines().flat_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let word = words.next().unwrap_or_default();
        words.map(move |form| (form, word))
    })
}

/// A word a line, then its forms.
const WORDS: &str = "\
become became
begin began begun
blow blew blown
break broke broken
bring brought
build built
buy bought
catch caught
choose chose chosen
come came
deal dealt
dig dug
draw drew drawn
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
fly flew flown
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone
grow grew grown
hang hung
hear heard
hide hid hidden
hold held
keep kept
know knew known
lead led
leave left
lend lent
lose lost
make made
mean meant
meet met
pay paid
ride rode ridden
ring rang rung
run ran
say said
see saw seen
seek sought
sell sold
send sent
shake shook shaken
shine shone
shoot shot
show shown
sing sang sung
sit sat
sleep slept
speak spoke spoken
spend spent
stand stood
steal stole stolen
swear swore sworn
sweep swept
swim swam swum
take took taken
teach taught
tell told
think thought
throw threw thrown
understand understood
wake woke woken
wear wore worn
write wrote written
child children
foot feet
knife knives
man men
mouse mice
person people
tooth teeth
wife wives
woman women
";
