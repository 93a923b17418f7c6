"""Matrix products in 8-bit floating point: dtype of the scales, quantisation, products, modules."""
