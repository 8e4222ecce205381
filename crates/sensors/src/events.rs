//! The events of hardware: text tables in `data/events/`, one per platform, and the classes
//! in `data/classes.txt` that give events of all vendors one name.
