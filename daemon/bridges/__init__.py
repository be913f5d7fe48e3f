"""The same contract in other tongues. Bridges post commands and hear events; nothing imports them but `app`."""
