"""LayerNorm with torch.var_mean on a flattened view: right, and shorter."""

import torch


def layer_norm(x, w, b, eps):
    rows = x.reshape(-1, x.shape[-1]).to(torch.float32)
    var, mean = torch.var_mean(rows, dim=1, correction=0, keepdim=True)
    y = torch.addcmul(b.float(), (rows - mean) / torch.sqrt(var + eps), w.float())
    return y.reshape(x.shape).to(x.dtype)
