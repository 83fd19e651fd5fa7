// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The control plane over TCP. A rank has connections with its parent and its children in the tree,
// over which exchanges go, and one with the hub, which is the first rank that is still there: what
// goes to all takes both ways, so that no rank that has died or was stopped keeps it from others.
#ifndef SHARDC_RUNTIME_CONTROL_PLANE_H
#define SHARDC_RUNTIME_CONTROL_PLANE_H

#include "runtime/control/EventLoop.h"
#include "runtime/control/Knowledge.h"
#include "runtime/control/Link.h"
#include "runtime/control/Rendezvous.h"
#include "runtime/control/TreeExchange.h"

#include <future>
#include <map>
#include <set>
#include <thread>

namespace shardc::rt {

/// Between two heartbeats.
constexpr std::chrono::milliseconds beatTime(5000);

class Plane final : public ControlPlane, private LinkOwner {
public:
  Plane(const ControlOptions &options, Meeting meeting, Clock::time_point deadline);
  ~Plane() override;
  /// Returns when all ranks are there. Throws Failure.
  void join();

  uint32_t worldSize() const override { return size; }
  uint32_t rank() const override { return self; }
  const std::vector<Peer> &peers() const override { return everybody; }
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override;
  void abort(shardrt_status status, const std::string &reason) noexcept override;
  void refuse(uint64_t run, const std::string &reason) noexcept override;
  void leave(std::string_view account) noexcept override;
  bool givenUp() const noexcept override { return knowledge.givenUp(); }
  std::optional<Failure> failure() const override { return knowledge.failure(); }
  std::optional<std::string> left(uint32_t rank) const override { return knowledge.left(rank); }
  std::optional<std::string> refused(uint32_t rank, uint64_t run) const override {
    return knowledge.refused(rank, run);
  }
  void onChange(std::function<void()> wake) override;
  void answerWith(Answer answer) override;
  std::vector<std::optional<std::string>> ask(std::string_view question,
                                              std::chrono::nanoseconds patience) override;
  std::optional<LastSeen> lastSeen(uint32_t rank) const override {
    return knowledge.lastSeen(rank);
  }

private:
  // By the callers' threads.
  std::vector<std::optional<std::string>> askAll(bool progress, std::string_view question,
                                                 Clock::time_point until, bool whileAlive);
  std::string lateness(uint64_t number, double seconds);
  void log(int32_t level, const std::string &text) const;

  // By the plane's thread: turns of its loop (Plane.cpp).
  void run();
  void turn();
  Clock::time_point nextTime() const;
  void doWhatIsDue();
  void acceptAll(const Descriptor &listening);
  void acceptLocal();
  /// Takes no connection for a while if the last one could not be taken for lack of something.
  void pauseIfCrowded();
  /// Watches the sockets that listen for these events of epoll.
  void listenFor(uint32_t events);
  Link &addLink(Descriptor socket, Handshake::Side side, Link::Use use);
  std::chrono::milliseconds timeToAnswer(const Link &link) const;
  void dropStrangers(Clock::time_point now);
  void stop();

  // Joining and staying connected (PlaneJoin.cpp).
  void begin();
  void tryNextPlace();
  void introduce(Link &hub);
  void sendPlaces();
  void contributeSelf();
  void call(uint32_t rank, const std::string &address, uint16_t port, Link::Use use);
  void lost(uint32_t rank, LinkEnd end, const std::string &reason);
  void relink();
  void askDirectly(uint64_t number);
  uint32_t hub() const;
  std::string nameOf(uint32_t rank) const;
  std::string rendezvousFailure() const;
  void noteTold(uint32_t rank);

  void opened(Link &link) override;
  void closed(Link &link, LinkEnd end, const std::string &reason) override;
  void unsent(Link &link) override { touched.push_back(&link); }
  void callFailed(Link &link, LinkEnd end, const std::string &reason);
  void noteStranger(const Link &link, LinkEnd end, const std::string &reason);

  // Messages (PlaneMessages.cpp). Handlers return false for what makes no sense.
  void received(Link &link, std::string_view body) override;
  template <typename Message> bool handle(Link &link, std::string_view body);
  bool on(Link &link, const Introduction &introduction);
  bool on(Link &link, const Greeting &greeting);
  bool on(Link &link, const Rejection &rejection);
  bool on(Link &link, const Place &place);
  bool on(Link &link, Gathered gathered);
  bool on(Link &link, const Spread &spread);
  bool on(Link &link, const Heartbeat &heartbeat);
  bool on(Link &link, const Question &question);
  bool on(Link &link, const Reply &reply);
  template <typename News> bool onNews(Link &link, const News &news, bool urgent);
  void give(uint32_t from, Gathered gathered, Link *link);
  bool spreadDown(const Spread &spread);
  void beat();
  std::string answerTo(const std::string &question);
  void answerQuestion(const Question &question, Link *link);
  /// To all links: what begins here, or came by `from` and ends the world.
  void broadcast(const std::string &message, const Link *from = nullptr);
  /// Of what came by `from`: over the tree, and what is urgent from the hub to everybody.
  void forward(const std::string &message, const Link &from, bool urgent = false);
  void giveUp(shardrt_status status, const std::string &reason);
  bool isNeighbour(const Link &link) const;

  const ControlOptions options;
  const uint32_t self, size;
  const Clock::time_point joinBefore;
  Knowledge knowledge;
  EventLoop loop;
  std::atomic<uint64_t> begun{0};     ///< exchanges
  std::atomic<uint64_t> questions{0}; ///< that this rank asked
  std::vector<Peer> everybody;        ///< written before joining is done
  std::mutex callbackMutex;           ///< guards the next two, also while they run
  std::function<void()> wake;
  Answer answer;

  // Of the plane's thread.
  Meeting meeting;
  Key key;
  Introduction introduction;
  std::optional<Guests> guests; ///< of rank 0
  std::optional<Search> search; ///< of the others
  std::vector<Descriptor> listening;
  std::vector<std::unique_ptr<Link>> links; ///< the oldest first
  std::vector<Link *> touched;              ///< in this turn
  std::map<uint32_t, Link *> neighbours;    ///< in the tree
  Link *hubLink = nullptr;
  bool met = false; ///< rank 0, which has then gone again
  bool placed = false, joined = false, changed = false, stopping = false, someOver = false;
  std::vector<uint16_t> ports; ///< of the planes, by rank
  std::set<uint32_t> unreachable;
  TreeExchange treeExchange;
  struct Asked {
    uint64_t number = 0;
    Link *way = nullptr;
  };
  std::vector<Asked> asked;       ///< the last question of each rank
  std::optional<Question> asking; ///< of this rank
  std::set<uint32_t> told;        ///< by rank 0: who was taken, or told why not
  std::promise<void> toldAll;
  uint32_t denied = 0; ///< callers that knew another secret
  std::string lastDenied;
  std::optional<Clock::time_point> searchAt, relinkAt, listenAgainAt, beatAt, stopAt;
  std::thread thread;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_PLANE_H
