# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of torchvision and timm for zoo.py. They come with small images and their own widths, which are the smallest of each family."""
import torch

TORCHVISION = {name: {} for name in (
    "alexnet vgg11 vgg11_bn resnet18 resnet50 resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_1 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large "
    "mnasnet0_5 shufflenet_v2_x0_5 efficientnet_b0 efficientnet_v2_s regnet_y_400mf regnet_x_400mf googlenet convnext_tiny").split()} | {
    "inception_v3": {"size": 96, "init_weights": False}, "googlenet": {"init_weights": False}, "vit_b_32": {"image_size": 64, "size": 64}, "swin_t": {}, "swin_v2_t": {},
    "maxvit_t": {"size": 224}, "fcn_resnet50": {"weights_backbone": None}, "deeplabv3_mobilenet_v3_large": {"weights_backbone": None},
    "lraspp_mobilenet_v3_large": {"weights_backbone": None}, "r3d_18": {"video": True}, "mc3_18": {"video": True}, "s3d": {"video": True, "size": 64}, "mvit_v1_b": {"video": True, "size": 224}}
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


def import_torchvision():
    """torchvision as PyPI has it is built for CUDA; beside a PyTorch without CUDA its compiled operators, such as nms, are absent, and
    the descriptions of their results, which it registers as it is imported, have nothing to describe. No model here uses them."""
    register = torch.library.register_fake

    def lenient(name, *args, **kwargs):
        decorate = register(name, *args, **kwargs)

        def of(function):
            try:
                return decorate(function)
            except RuntimeError as error:
                if "does not exist" not in str(error):
                    raise
                return function

        return of

    torch.library.register_fake = lenient
    try:
        import torchvision
    finally:
        torch.library.register_fake = register
    return torchvision


def build(library, name):
    torch.manual_seed(0)
    own = dict((TORCHVISION if library == "torchvision" else TIMM)[name])
    size, video = own.pop("size", 64), own.pop("video", False)
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
    return module.eval(), {"x": torch.randn(2 if size > 100 or video else 3, 3, *frames, size, size, generator=generator)}


def names(library):
    return list(TORCHVISION if library == "torchvision" else TIMM)
