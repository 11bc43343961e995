"""Text: queries, words, sentences, speakers, times and token counts."""
