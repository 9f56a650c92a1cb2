/* How much two words differ, to say which one was meant. */
#ifndef VB_BASE_WORDS_H
#define VB_BASE_WORDS_H

#define VB_WORDS_APART 64

/* Number of letters to insert, delete or change (Levenshtein); VB_WORDS_APART if either word is that long or longer. */
unsigned vb_word_distance(const char *a, const char *b);

#endif
