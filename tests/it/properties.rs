//! What holds of every program: random small timelines.
