// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Link.h"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>

namespace shardc::rt {

namespace {
/// Read at once from one connection, before others have their turn.
constexpr size_t chunkBytes = 1 << 16;
constexpr int chunksPerTurn = 16;
} // namespace

Link::Link(Descriptor socket, Handshake::Side side, const Key &key, LinkOwner &owner)
    : fd(std::move(socket)), owner(owner), handshake(side, key),
      connecting(side == Handshake::Side::Caller) {
  out = handshake.opening();
  if (!connecting)
    other = remoteAddress(fd).str();
}

uint32_t Link::interest() const {
  if (connecting)
    return EPOLLOUT;
  return EPOLLIN | (sent < out.size() && !broken ? uint32_t(EPOLLOUT) : 0);
}

void Link::handle(uint32_t events) {
  if (over)
    return;
  if (connecting) {
    if (int error = connectionError(fd))
      return end(LinkEnd::Lost, systemError(error));
    if (!(events & (EPOLLOUT | EPOLLHUP | EPOLLERR)))
      return;
    connecting = false;
    other = remoteAddress(fd).str();
  }
  if (events & EPOLLOUT)
    flush();
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
    return;
  for (int i = 0; i < chunksPerTurn && !over; ++i)
    if (!(isOpen() ? readMessages() : readHandshake()))
      return;
}

bool Link::read(char *bytes, size_t limit, size_t &got) {
  ssize_t count = recv(fd.get(), bytes, limit, 0);
  got = count > 0 ? size_t(count) : 0;
  if (count > 0)
    return true;
  if (count == 0)
    end(LinkEnd::Closed, "it was closed");
  else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    end(LinkEnd::Lost, systemError(errno));
  return false;
}

bool Link::readHandshake() {
  // Not a byte more is taken from somebody who has not shown the secret.
  char bytes[64];
  size_t got = 0;
  if (!read(bytes, std::min(sizeof bytes, handshake.wants() - in.size()), got))
    return false;
  in.append(bytes, got);
  if (in.size() < handshake.wants())
    return true;
  Handshake::Result result = handshake.take(in, out);
  in.clear();
  flush();
  switch (result) {
  case Handshake::Result::More:
    return true;
  case Handshake::Result::Stranger:
    end(LinkEnd::Stranger, "what answers there is no control plane of shardrt");
    return false;
  case Handshake::Result::Version:
    end(LinkEnd::Version, "its control plane has version " +
                              std::to_string(handshake.otherVersion()) + ", this one " +
                              std::to_string(controlVersion) +
                              ": all ranks need the same libshardrt");
    return false;
  case Handshake::Result::Denied:
    end(LinkEnd::Denied, "it knows another secret");
    return false;
  case Handshake::Result::Done:
    writer.emplace(handshake.sendKey());
    reader.emplace(handshake.receiveKey());
    owner.opened(*this);
    return true;
  }
  return false;
}

bool Link::readMessages() {
  char bytes[chunkBytes];
  size_t got = 0;
  if (!read(bytes, sizeof bytes, got))
    return false;
  if (finishing)
    return true;
  reader->feed({bytes, got});
  for (std::string_view body; !over && !finishing;) {
    switch (reader->next(body)) {
    case FrameReader::Result::More:
      return true;
    case FrameReader::Result::Message:
      owner.received(*this, body);
      break;
    case FrameReader::Result::TooLong:
      end(LinkEnd::Forged, "a message is longer than any can be");
      break;
    case FrameReader::Result::Forged:
      end(LinkEnd::Forged, "a message was changed on its way");
      break;
    }
  }
  return !over;
}

void Link::send(std::string_view body) {
  if (over || finishing || !writer)
    return;
  writer->append(out, body);
  owner.unsent(*this);
}

void Link::finish() {
  if (over)
    return;
  finishing = true;
  owner.unsent(*this);
}

void Link::flush() {
  while (!over && !broken && !connecting && sent < out.size()) {
    ssize_t count = ::send(fd.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    // What the other end had sent before, say that it leaves, is read first: epoll reports the end.
    if (count < 0)
      broken = true;
    else
      sent += size_t(count);
  }
  if (sent == out.size() || broken) {
    out.clear();
    sent = 0;
    if (finishing && !shut && !over) {
      shut = true;
      shutdown(fd.get(), SHUT_WR);
    }
  } else if (sent > chunkBytes) {
    out.erase(0, sent);
    sent = 0;
  }
}

void Link::end(LinkEnd how, const std::string &reason) {
  if (over)
    return;
  over = true;
  owner.closed(*this, how, reason);
}

} // namespace shardc::rt
