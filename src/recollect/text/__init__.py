"""Words: what is asked, how texts are cut into words and sentences, who speaks, when, and how long it is."""
