mod filters;
mod loads;
mod model;
mod scores;
