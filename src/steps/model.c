/* See model.h. */
#include "steps/model.h"
#include <stddef.h>
#include <string.h>
#include "base/invariant.h"

static const struct model presets[] = {
	{ .name = "llama3-8b",
		.layers = 32,
		.hidden = 4096,
		.heads = 32,
		.kv_heads = 8,
		.head_dim = 128,
		.ffn = 14336,
		.vocabulary = 128256,
		.sequence = 8192,
		.source = "arXiv 2407.21783 table 3" },
	{ .name = "llama3-70b",
		.layers = 80,
		.hidden = 8192,
		.heads = 64,
		.kv_heads = 8,
		.head_dim = 128,
		.ffn = 28672,
		.vocabulary = 128256,
		.sequence = 8192,
		.source = "arXiv 2407.21783 table 3" },
	{ .name = "llama3-405b",
		.layers = 126,
		.hidden = 16384,
		.heads = 128,
		.kv_heads = 8,
		.head_dim = 128,
		.ffn = 53248,
		.vocabulary = 128256,
		.sequence = 8192,
		.source = "arXiv 2407.21783 table 3" },
	{ .name = "gpt3-175b",
		.kind = MODEL_GPT,
		.layers = 96,
		.hidden = 12288,
		.heads = 96,
		.kv_heads = 96,
		.head_dim = 128,
		.ffn = 49152,
		.vocabulary = 50257,
		.sequence = 2048,
		.source = "arXiv 2005.14165 table 2.1" },
	{ .name = "gpt-13b",
		.kind = MODEL_GPT,
		.layers = 40,
		.hidden = 5120,
		.heads = 40,
		.kv_heads = 40,
		.head_dim = 128,
		.ffn = 20480,
		.vocabulary = 50257,
		.sequence = 2048,
		.source = "arXiv 2005.14165 table 2.1, with hidden 5120, which 40 heads divide" },
	{ .name = "mixtral-8x7b",
		.layers = 32,
		.hidden = 4096,
		.heads = 32,
		.kv_heads = 8,
		.head_dim = 128,
		.ffn = 14336,
		.vocabulary = 32000,
		.experts = 8,
		.top_k = 2,
		.sequence = 32768,
		.source = "arXiv 2401.04088 table 1" },
	{ .name = "deepseek-v3",
		.layers = 61,
		.hidden = 7168,
		.heads = 128,
		.kv_heads = 128,
		.head_dim = 128,
		.ffn = 2048,
		.vocabulary = 129280,
		.experts = 256,
		.top_k = 8,
		.shared = 1,
		.dense_layers = 3,
		.dense_ffn = 18432,
		.latent = { .query_rank = 1536, .key_rank = 512, .plain = 128, .rotary = 64, .value = 128 },
		.router_bias = 1,
		.sequence = 4096,
		.source = "arXiv 2412.19437 section 4.2, and the model's config.json; without multi-token prediction" },
	{ .name = "qwen3-235b-a22b",
		.layers = 94,
		.hidden = 4096,
		.heads = 64,
		.kv_heads = 4,
		.head_dim = 128,
		.ffn = 1536,
		.vocabulary = 151936,
		.experts = 128,
		.top_k = 8,
		.norms_heads = true,
		.sequence = 4096,
		.source = "the model's config.json" },
	{ .name = "qwen3-30b-a3b",
		.layers = 48,
		.hidden = 2048,
		.heads = 32,
		.kv_heads = 4,
		.head_dim = 128,
		.ffn = 768,
		.vocabulary = 151936,
		.experts = 128,
		.top_k = 8,
		.norms_heads = true,
		.sequence = 4096,
		.source = "the model's config.json" },
};

const struct model *model_of(uint32_t number)
{
	return number < sizeof(presets) / sizeof(presets[0]) ? &presets[number] : NULL;
}

const struct model *model_find(const char *name)
{
	for (uint32_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	return NULL;
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* The matrices that a token is multiplied by. */
static uint64_t attention_matrices(const struct model *model)
{
	const uint64_t h = model->hidden, a = model->heads, d = model->head_dim;
	const struct model_latent *of = &model->latent;
	if (!of->query_rank)
		return 2 * h * a * d + 2 * h * model->kv_heads * d;
	return h * of->query_rank + of->query_rank * a * (of->plain + of->rotary) + h * (of->key_rank + of->rotary) +
	       of->key_rank * a * (of->plain + of->value) + a * of->value * h;
}

uint64_t model_attention_parameters(const struct model *model)
{
	const uint64_t h = model->hidden;
	uint64_t small = 2 * h; /* the norms before attention and before the FFN */
	if (model->kind == MODEL_GPT)
		small = 4 * h /* norms with biases */ + 3 * h + h /* biases of the two matrices */;
	if (model->latent.query_rank)
		small += model->latent.query_rank + model->latent.key_rank; /* norms of the compressed */
	if (model->norms_heads)
		small += 2 * (uint64_t)model->head_dim;
	return attention_matrices(model) + small;
}

uint64_t model_compressing_parameters(const struct model *model)
{
	const struct model_latent *of = &model->latent;
	return of->query_rank ? (uint64_t)model->hidden * (of->query_rank + of->key_rank + of->rotary) +
					of->query_rank + of->key_rank
			      : 0;
}

uint64_t model_expert_parameters(const struct model *model)
{
	return (model->kind == MODEL_GPT ? 2 : 3) * (uint64_t)model->hidden * model->ffn;
}

uint64_t model_dense_ffn_parameters(const struct model *model)
{
	const uint64_t h = model->hidden, f = model->experts ? model->dense_ffn : model->ffn;
	return model->kind == MODEL_GPT ? 2 * h * f + f + h : 3 * h * f;
}

uint64_t model_router_parameters(const struct model *model)
{
	return (uint64_t)model->hidden * model->experts + (uint64_t)model->experts * model->router_bias +
	       model->shared * model_expert_parameters(model);
}

uint64_t model_ffn_parameters(const struct model *model, bool has_experts)
{
	return has_experts ? model->experts * model_expert_parameters(model) + model_router_parameters(model)
			   : model_dense_ffn_parameters(model);
}

uint64_t model_embedding_parameters(const struct model *model, bool output)
{
	const uint64_t words = (uint64_t)model->vocabulary * model->hidden;
	if (model->kind == MODEL_GPT)
		return output ? 0 : words + (uint64_t)model->sequence * model->hidden;
	return words;
}

bool model_layer_has_experts(const struct model *model, uint32_t layer)
{
	assert(layer < model->layers);
	return model->experts && layer >= model->dense_layers;
}

/* The last norm; the count of GPT leaves it out, as its paper's does (arXiv 2104.04473, equation 2). */
static uint64_t last_norm(const struct model *model)
{
	return model->kind == MODEL_GPT ? 0 : model->hidden;
}

static uint64_t parameters(const struct model *model, uint64_t ffn_of_experts)
{
	const uint64_t dense = !model->experts                       ? model->layers
			       : model->dense_layers < model->layers ? model->dense_layers
								     : model->layers;
	return model_embedding_parameters(model, false) + model_embedding_parameters(model, true) + last_norm(model) +
	       model->layers * model_attention_parameters(model) + dense * model_dense_ffn_parameters(model) +
	       (model->layers - dense) * ffn_of_experts;
}

uint64_t model_parameters(const struct model *model)
{
	return parameters(model, model_ffn_parameters(model, true));
}

uint64_t model_active_parameters(const struct model *model)
{
	return parameters(model,
		model->top_k * model_expert_parameters(model) + (model->experts ? model_router_parameters(model) : 0));
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

double model_attention_work(const struct model *model)
{
	return 2.0 * (double)attention_matrices(model);
}

double model_ffn_work(const struct model *model, bool has_experts)
{
	const double h = model->hidden;
	const double matrices = model->kind == MODEL_GPT ? 2 : 3;
	if (!has_experts)
		return 2 * matrices * h * (model->experts ? model->dense_ffn : model->ffn);
	return 2 * (matrices * h * model->ffn * (model->top_k + model->shared) + h * model->experts);
}

double model_attention_last_work(const struct model *model)
{
	const double width = model->latent.query_rank ? model->latent.value : model->head_dim;
	return 2.0 * model->heads * width * model->hidden;
}

double model_ffn_last_work(const struct model *model)
{
	return 2.0 * model->hidden * (model->experts ? model->dense_ffn : model->ffn);
}

double model_score_work(const struct model *model, uint32_t sequence, bool is_causal)
{
	const struct model_latent *of = &model->latent;
	const double widths = of->query_rank ? of->plain + of->rotary + of->value : 2.0 * model->head_dim;
	return (is_causal ? 1.0 : 2.0) * sequence * model->heads * widths;
}

double model_output_work(const struct model *model)
{
	return 2.0 * model->vocabulary * model->hidden;
}

double model_work(const struct model *model, uint32_t sequence, bool is_causal)
{
	double sum = model_output_work(model);
	for (uint32_t i = 0; i < model->layers; i++)
		sum += model_attention_work(model) + model_ffn_work(model, model_layer_has_experts(model, i)) +
		       model_score_work(model, sequence, is_causal);
	return sum;
}

uint64_t model_kv_elements(const struct model *model)
{
	return model->latent.query_rank ? model->latent.key_rank + model->latent.rotary
					: 2 * (uint64_t)model->kv_heads * model->head_dim;
}

uint64_t model_kv_bytes(const struct model *model)
{
	return 2 * model->layers * model_kv_elements(model);
}
