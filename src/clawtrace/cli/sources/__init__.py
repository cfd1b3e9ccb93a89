"""Where commands read runs from: recordings and stores."""
