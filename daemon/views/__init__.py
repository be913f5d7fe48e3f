"""What people look at. Views speak to a daemon through the broker, never into its objects."""
