/* Transformers by their shape: parameters, work and bytes, each by a formula that gives the published count.
 *
 *   MODEL_RMS_SWIGLU  Llama and its kin: RMSNorm, gated FFN of three matrices, no biases; input and output embeddings
 *                     of their own
 *   MODEL_GPT         GPT-3: LayerNorm, FFN of two matrices, biases, positions; one embedding for both ends
 *
 * A layer with experts has a router and `experts` FFNs of width `ffn`, of which a token meets `top_k`, and `shared`
 * ones that every token meets. */
#ifndef STEPS_MODEL_H
#define STEPS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum model_kind { MODEL_RMS_SWIGLU, MODEL_GPT };

/* Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1): ranks of the compressed queries and keys,
 * and a head's widths. query_rank 0: attention is grouped-query attention. */
struct model_latent {
	uint32_t query_rank, key_rank, plain, rotary, value;
};

struct model {
	const char *name;
	enum model_kind kind;
	uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
	uint32_t experts, top_k, shared;  /* experts 0: every layer is dense */
	uint32_t dense_layers, dense_ffn; /* of a model with experts: its first layers, which have none */
	struct model_latent latent;
	bool norms_heads;     /* Qwen3: a norm of queries and one of keys, of head_dim each */
	uint32_t router_bias; /* one for each expert, 0 or 1 */
	uint32_t sequence;    /* tokens, in training */
	const char *source;
};

const struct model *model_of(uint32_t number); /* from 0; NULL: there are no more */
const struct model *model_find(const char *name);

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* Of a layer; the second, that of `experts` of its experts alone. */
uint64_t model_attention_parameters(const struct model *model);   /* with the layer's norms */
uint64_t model_compressing_parameters(const struct model *model); /* of these, latent attention's that no head owns */
uint64_t model_ffn_parameters(const struct model *model, bool has_experts);
uint64_t model_expert_parameters(const struct model *model);                 /* of one expert */
uint64_t model_dense_ffn_parameters(const struct model *model);              /* of a dense layer */
uint64_t model_router_parameters(const struct model *model);                 /* with the shared experts */
uint64_t model_embedding_parameters(const struct model *model, bool output); /* of the input, or of the output; with
										positions; 0: it is the other one */
uint64_t model_parameters(const struct model *model);
uint64_t model_active_parameters(const struct model *model); /* that a token meets */
bool model_layer_has_experts(const struct model *model, uint32_t layer);

/* ---- Work, of a token's forward pass; a multiplication and an addition are two operations -------------------------
 */

/* By so much a layer multiplies its token. */
double model_attention_work(const struct model *model);
double model_ffn_work(const struct model *model, bool has_experts);
/* Of these, the last matrix: attention's output, and that of a dense FFN. */
double model_attention_last_work(const struct model *model);
double model_ffn_last_work(const struct model *model);
/* Scores and their sum over so many tokens; causal: of each token over those before it, so half. */
double model_score_work(const struct model *model, uint32_t sequence, bool is_causal);
double model_output_work(const struct model *model);
double model_work(const struct model *model, uint32_t sequence, bool is_causal);

/* Keys and values that a token leaves behind in all layers, elements of two bytes. */
uint64_t model_kv_bytes(const struct model *model);
/* Elements of a layer's keys and values, of a token. */
uint64_t model_kv_elements(const struct model *model);

#endif
