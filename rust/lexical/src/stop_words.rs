//! English words that say nothing about a message, and the pieces that contractions leave ("don't": don, t).

/// Folded words that are neither indexed nor asked for.
pub fn stop_words() -> impl Iterator<Item = &'static str> {
    STOP_WORDS.split_ascii_whitespace()
}

const STOP_WORDS: &str = "\
    a about after all also am an and any are aren as at be because been before being both but by can could \
    couldn d did didn do does doesn doing don during each few for from had hadn has hasn have haven having he \
    her hers him his how i if in into is isn it its just ll m me more most my no nor not now o of off on once \
    only or other our out over own re s same she should shouldn so some such t than that the their them then \
    there these they this those through to too under until up ve very was wasn we were what when where which \
    while who whom whose why will with won would wouldn you your";
