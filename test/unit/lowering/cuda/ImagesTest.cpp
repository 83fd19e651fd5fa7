// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The images that the compiler writes and the one that the plugin takes: together they run on every
// device from the lowest chip on.

#include "runtime/plugins/cuda/Images.h"
#include "lowering/cuda/core/Chips.h"

#include <gtest/gtest.h>
#include <vector>

using namespace shardc::cuda;
using namespace shardc::plugin::cuda;

namespace {

/// Compute capabilities of devices there are, of any generation since sm_75.
constexpr int kDevices[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

/// Images as shardc writes them for a list of chips, all of some bytes.
std::vector<shardrt_device_image> imagesOf(std::vector<unsigned> numbers) {
  std::vector<Chip> chips;
  for (unsigned number : numbers)
    chips.push_back({number, 70});
  std::vector<shardrt_device_image> images;
  for (size_t i = 0; i < chips.size(); ++i) {
    images.push_back({"code", 4, SHARDRT_IMAGE_CUBIN, numbers[i]});
    if (keepsPtx(chips, i))
      images.push_back({"text", 5, SHARDRT_IMAGE_PTX, numbers[i]});
  }
  return images;
}

/// Whether a device can run an image, by what NVIDIA says of compatibility.
bool runs(const shardrt_device_image &image, int device) {
  int chip = int(image.chip);
  return image.format == SHARDRT_IMAGE_PTX ? chip <= device
                                           : chip / 10 == device / 10 && chip <= device;
}

TEST(CudaImagesTest, EveryDeviceFromTheLowestChipOnHasAnImage) {
  const std::vector<std::vector<unsigned>> lists = {
      {80}, {90}, {100}, {80, 90}, {80, 100}, {90, 100}, {80, 90, 100}, {80, 86, 103}, {89, 120}};
  for (const std::vector<unsigned> &list : lists)
    for (int device : kDevices) {
      std::vector<shardrt_device_image> images = imagesOf(list);
      const shardrt_device_image *image = chooseImage(images, device, false);
      EXPECT_EQ(image != nullptr, device >= int(list.front()))
          << "sm_" << device << " of " << chipsOf(images);
      if (image)
        EXPECT_TRUE(runs(*image, device)) << "sm_" << device << " of " << chipsOf(images);
    }
}

TEST(CudaImagesTest, PtxIsKeptWhereItIsNeededOnly) {
  EXPECT_EQ(chipsOf(imagesOf({80, 90, 100})), "sm_80, sm_90, sm_100, sm_100 and later (as PTX)");
  EXPECT_EQ(chipsOf(imagesOf({80, 100})),
            "sm_80, sm_80 and later (as PTX), sm_100, sm_100 and later (as PTX)");
  EXPECT_EQ(chipsOf(imagesOf({80, 86})), "sm_80, sm_86, sm_86 and later (as PTX)");
}

TEST(CudaImagesTest, MachineCodeIsPreferredAndThenTheNewestPtx) {
  std::vector<shardrt_device_image> images = imagesOf({80, 90, 100});
  auto choice = [&](int device) {
    const shardrt_device_image *image = chooseImage(images, device, false);
    return image ? std::pair(int(image->format), int(image->chip)) : std::pair(0, 0);
  };
  EXPECT_EQ(choice(75), std::pair(0, 0));
  EXPECT_EQ(choice(80), std::pair(int(SHARDRT_IMAGE_CUBIN), 80));
  EXPECT_EQ(choice(89), std::pair(int(SHARDRT_IMAGE_CUBIN), 80));
  EXPECT_EQ(choice(90), std::pair(int(SHARDRT_IMAGE_CUBIN), 90));
  EXPECT_EQ(choice(103), std::pair(int(SHARDRT_IMAGE_CUBIN), 100));
  EXPECT_EQ(choice(120), std::pair(int(SHARDRT_IMAGE_PTX), 100));
}

TEST(CudaImagesTest, TheEmulatedDeviceTakesBitcodeAndNothingElseDoes) {
  std::vector<shardrt_device_image> images = imagesOf({80});
  EXPECT_EQ(chooseImage(images, 80, true), nullptr);
  images.push_back({"bits", 4, SHARDRT_IMAGE_BITCODE, 0});
  EXPECT_EQ(chooseImage(images, 80, true), &images.back());
  EXPECT_EQ(chooseImage(images, 80, false)->format, uint32_t(SHARDRT_IMAGE_CUBIN));
}

/// An image whose bytes have a text in them.
shardrt_device_image withText(std::string_view text, uint32_t format) {
  return {text.data(), text.size(), format, 90};
}

TEST(CudaImagesTest, MachineCodeOfALaterCudaThanTheDriverSaysWhatToDo) {
  constexpr char code[] = "\x7f"
                          "ELF\0ptxas\0Cuda compilation tools, release 13.0, V13.0.88\0more";
  shardrt_device_image image = withText(std::string_view(code, sizeof code), SHARDRT_IMAGE_CUBIN);
  EXPECT_EQ(toolkitOf(image), 13000);
  EXPECT_EQ(adviceOnImage(image, 12040),
            "its machine code was made by ptxas of CUDA 13.0, and the driver is one for CUDA 12.4: "
            "install a driver for CUDA 13, or compile the program again with a ptxas of CUDA 12 "
            "(shardc takes the one that SHARDC_PTXAS names)");
  EXPECT_EQ(adviceOnImage(image, 13000), "");
  EXPECT_EQ(adviceOnImage(image, 14010), "");
  // Of one major version, the minor does not count.
  constexpr std::string_view later = "Cuda compilation tools, release 12.9, V12.9.1";
  EXPECT_EQ(toolkitOf(withText(later, SHARDRT_IMAGE_CUBIN)), 12090);
  EXPECT_EQ(adviceOnImage(withText(later, SHARDRT_IMAGE_CUBIN), 12040), "");
  // Code that does not say who made it, also where the text is cut off.
  EXPECT_EQ(toolkitOf(withText("no note", SHARDRT_IMAGE_CUBIN)), 0);
  EXPECT_EQ(toolkitOf(withText("Cuda compilation tools, release ", SHARDRT_IMAGE_CUBIN)), 0);
}

TEST(CudaImagesTest, PtxThatADriverDoesNotReadNamesBothVersions) {
  constexpr char text[] = "//\n.version 8.6\n.target sm_100\n";
  shardrt_device_image image = withText(std::string_view(text, sizeof text), SHARDRT_IMAGE_PTX);
  EXPECT_EQ(adviceOnImage(image, 12040),
            "it is PTX 8.6, and the driver is one for CUDA 12.4: if the driver is too old for it, "
            "install a newer one, or compile the program for the device's own chip");
}

} // namespace
