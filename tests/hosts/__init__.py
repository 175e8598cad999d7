"""Made-up machines: what the rules decide on distributions that the tests do not run on."""
