"""Where samples live and leave: buffers, loudspeakers, files, encoders. A leaf: it knows no other room."""
