# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of torchvision and timm for zoo.py. They come with small images and their own widths, which are the smallest of each family."""
import torch

TORCHVISION = {name: {} for name in (
    "alexnet vgg11 vgg11_bn resnet18 resnet50 resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_1 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large "
    "mnasnet0_5 shufflenet_v2_x0_5 efficientnet_b0 efficientnet_v2_s regnet_y_400mf regnet_x_400mf googlenet convnext_tiny").split()} | {
    "inception_v3": {"size": 96, "init_weights": False}, "googlenet": {"init_weights": False}, "vit_b_32": {"image_size": 64, "size": 64}, "swin_t": {}, "swin_v2_t": {},
    "maxvit_t": {"size": 224}, "fcn_resnet50": {"weights_backbone": None}, "deeplabv3_mobilenet_v3_large": {"weights_backbone": None},
    "lraspp_mobilenet_v3_large": {"weights_backbone": None}, **{name: {"weights_backbone": None, "images": True} for name in (
        "fasterrcnn_mobilenet_v3_large_320_fpn retinanet_resnet50_fpn ssdlite320_mobilenet_v3_large fcos_resnet50_fpn maskrcnn_resnet50_fpn keypointrcnn_resnet50_fpn").split()},
    "r3d_18": {"video": True}, "mc3_18": {"video": True}, "s3d": {"video": True, "size": 224}, "mvit_v1_b": {"video": True, "size": 224}}
TIMM = {name: {} for name in (
    "resnet10t resnet14t resnetv2_50 resnetblur18 seresnet18 ecaresnet26t skresnet18 res2net50_14w_8s resnest14d dla34 dpn48b hrnet_w18_small cspresnet50 darknet21 vovnet39a "
    "densenetblur121d efficientnet_lite0 mobilenetv3_small_050 mobilenetv4_conv_small_035 mnasnet_small tf_efficientnetv2_b0 ghostnet_050 repghostnet_050 repvgg_a0 "
    "rexnet_100 regnetz_005 nf_regnet_b0 nfnet_f0 lcnet_035 hardcorenas_a fbnetc_100 selecsls42 xception41 hgnet_tiny "
    "convnext_atto convnextv2_atto edgenext_xx_small poolformer_s12 caformer_s18 convformer_s18 starnet_s050 inception_next_atto repvit_m0_9 fasternet_t0 efficientvit_b0 mambaout_femto").split()} | {
    name: {"img_size": 64, "size": 64} for name in (
    "vit_tiny_patch16_224 deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224 convit_tiny mixer_s32_224 gmlp_ti16_224 resmlp_12_224 "
    "eva02_tiny_patch14_224 xcit_nano_12_p16_224 tnt_s_legacy_patch16_224 flexivit_small vit_relpos_small_patch16_224 volo_d1_224 visformer_tiny "
    "pit_ti_224 nest_tiny levit_128s twins_pcpvt_small").split()} | {
    name: {"size": 224} for name in (
    "swin_tiny_patch4_window7_224 swinv2_cr_tiny_ns_224 coatnet_pico_rw_224 maxvit_pico_rw_256 coat_tiny gcvit_xxtiny focalnet_tiny_srf davit_tiny efficientformer_l1 efficientformerv2_s0 "
    "mvitv2_tiny pvt_v2_b0 mobilevit_xxs mobilevitv2_050 tiny_vit_5m_224 hiera_tiny_224 fastvit_t8 sequencer2d_s efficientvit_m0 nextvit_small rdnet_tiny").split()}
TIMM |= {"maxvit_pico_rw_256": {"size": 256}, "crossvit_tiny_240": {"size": 240}}


def suppressed(boxes, scores, limit):
    """Which boxes overlap no better one by more than a part of both."""
    left, kept = scores.argsort(descending=True, stable=True), []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while left.numel():
        best, left = left[0], left[1:]
        kept.append(best)
        corner, end = torch.maximum(boxes[best, :2], boxes[left, :2]), torch.minimum(boxes[best, 2:], boxes[left, 2:])
        common = (end - corner).clamp(min=0).prod(-1)
        left = left[common / (area[best] + area[left] - common) <= limit]
    return torch.stack(kept) if kept else scores.new_empty(0, dtype=torch.int64)


def import_torchvision():
    """torchvision as PyPI has it is built for PyTorch with CUDA: beside one without, its compiled operators are absent, and its import fails since it
    describes the results of two of them. Those are declared here first, and one that detection calls is written in Python."""
    if not hasattr(import_torchvision, "declared"):
        import_torchvision.declared = torch.library.Library("torchvision", "FRAGMENT")
        import_torchvision.declared.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_torchvision.declared.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_torchvision.declared.impl("nms", suppressed, "CPU")
    import torchvision
    torchvision.ops.boxes._assert_has_ops = lambda: None
    return torchvision


def build(library, name):
    torch.manual_seed(0)
    own = dict((TORCHVISION if library == "torchvision" else TIMM)[name])
    size, video, listed = own.pop("size", 64), own.pop("video", False), own.pop("images", False)
    torchvision = import_torchvision()
    if library == "torchvision":
        module = torchvision.models.get_model(name, weights=None, num_classes=10, **own)
    else:
        import timm
        module = timm.create_model(name, pretrained=False, num_classes=10, **own)
    # Random weights make some of these models grow without bound, and running statistics that are those of no data hide mistakes.
    generator = torch.Generator().manual_seed(1)
    for part in module.modules():
        if getattr(part, "running_var", None) is not None:
            part.running_mean.uniform_(-0.1, 0.1, generator=generator)
            part.running_var.uniform_(0.5, 1.5, generator=generator)
    frames = ([16] if "mvit" in name else [8 if name != "s3d" else 16]) if video else []
    if listed:
        return module.eval(), {"images": [torch.rand(3, size, size, generator=generator) for _ in range(2)]}
    return module.eval(), {"x": torch.randn(2 if size > 100 or video else 3, 3, *frames, size, size, generator=generator)}


def names(library):
    return list(TORCHVISION if library == "torchvision" else TIMM)
