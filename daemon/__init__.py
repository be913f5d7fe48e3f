"""What makes a voice a service: configuration, messages, the queue, and the one owner of state."""
