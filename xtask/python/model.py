"""model.py FILE: a language model of random weights, about 53 MB, without a vocabulary."""
import sys
import numpy as np
import gguf

LAYERS, WIDTH, FEED, HEADS, VOCABULARY = 3, 1024, 2560, 16, 6144
QUANT = gguf.GGMLQuantizationType.Q8_0

random = np.random.default_rng(1)
writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_context_length(512)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(FEED)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_vocab_size(VOCABULARY)
writer.add_tokenizer_model("no_vocab")
writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)


def matrix(name, rows, columns):
    data = random.standard_normal((rows, columns), dtype=np.float32) * 0.02
    writer.add_tensor(name, gguf.quants.quantize(data, QUANT), raw_dtype=QUANT)


matrix("token_embd.weight", VOCABULARY, WIDTH)
for layer in range(LAYERS):
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, dtype=np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        matrix(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
    matrix(f"blk.{layer}.ffn_gate.weight", FEED, WIDTH)
    matrix(f"blk.{layer}.ffn_up.weight", FEED, WIDTH)
    matrix(f"blk.{layer}.ffn_down.weight", WIDTH, FEED)
writer.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
matrix("output.weight", VOCABULARY, WIDTH)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
