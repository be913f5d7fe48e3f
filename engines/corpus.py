"""What a kiosk and a robot say: the sentences that a voice is quantised with, and those it is then judged by.

English, whatever the voice's language: espeak-ng reads them by that language's rules, hence with its own phonemes,
and the numbers in them it says in that language. No sentence is in both lists.
"""

from __future__ import annotations

from typing import Final

CALIBRATION: Final = (
    "Welcome to the museum, the exhibition begins on the second floor.",
    "Please take your ticket and keep it until you leave.",
    "I am on my way to the kitchen.",
    "The train to Hamburg leaves at 14:35 from platform 9.",
    "Obstacle ahead. I will wait for 10 seconds.",
    "Your order number is 4 7 2, and it will be ready in about six minutes.",
    "Battery at 20 percent, returning to the charging station.",
    "Would you like a receipt?",
    "This lift is going up.",
    "Please keep clear of the closing doors!",
    "I have found three boxes on the left shelf.",
    "Which language would you prefer to use today?",
    "Your payment of 12 euros and 50 cents was accepted. Thank you.",
    "Attention please, the building is closing in fifteen minutes.",
    "Turn right after the yellow pillar, then follow the blue line.",
    "I could not reach the charging dock; could you help me, please?",
    "Good morning! How may I help you?",
    "The pharmacy is just beyond the fourth exit, next to the juice bar.",
    "Warning: high voltage. Do not touch the cable.",
    "Visitors with large bags should use the cloakroom on level zero.",
    "My left gripper is empty, so I can carry one more package.",
    "Flight 8 1 6 to Geneva has been delayed by half an hour.",
    "Show your passport to the officer, and choose either queue.",
    "Yes.",
)
"""Where ranges, roundings and biases come from."""

JUDGED: Final = (
    "The next guided tour begins at a quarter past eleven in the main hall.",
    "Please insert your card, then enter your four digit code.",
    "I will bring the package to the reception and come back at once.",
    "Caution, the floor is wet.",
    "Room 217 is at the end of the corridor, on your right.",
    "Sorry, I did not understand you. Could you say that again?",
    "Emergency stop! Everybody, please step back.",
    "Children under six travel free of charge on all our buses.",
)
"""What the quality gate listens to."""
