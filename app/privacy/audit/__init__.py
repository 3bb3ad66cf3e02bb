"""Statistics of privacy audits: claims about answers, and how data refute them."""
