@0xd1f7a3c95b2e8640;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("stagger::wire");

# What workers and the parameter server say to each other, in Cap'n Proto's standard stream
# framing. A chunk's payload is a segment of its own (net/frame.hpp), so that it is never copied on
# the way out. Codecs, checks and typed messages: ps/protocol.hpp.

struct Message {
  jobHash @0 :UInt64;  # FNV-1a of the job id: a stray worker of another job is refused

  union {
    hello @1 :Hello;
    welcome @2 :Welcome;
    refuse @3 :Refuse;
    profile @4 :Profile;
    begin @5 :Begin;
    push @6 :Chunk;
    center @7 :Chunk;
    resend @8 :ChunkId;
    heartbeat @9 :Heartbeat;
    prepare @10 :Prepare;
    promise @11 :Promise;
    commit @12 :Commit;
    farewell @13 :Farewell;
    announce @14 :Announce;
    turn @15 :Round;
    received @16 :Round;  # PS -> worker: the last byte of a push has been read
    ping @17 :Ping;
    pong @18 :Pong;
    rhythm @19 :Rhythm;
    probe @20 :Probe;
  }
}

struct Parameter {
  name @0 :Text;
  shape @1 :List(UInt64);
}

# Worker -> PS, first message.
struct Hello {
  protocolVersion @0 :UInt16;
  job @1 :Text;
  rank @2 :Int32;  # -1: assign one
  world @3 :UInt32;
  schemaHash @4 :UInt64;
  parameters @5 :List(Parameter);
  settings @6 :Text;  # the lines of the config that change results
}

# PS -> worker, answer to Hello.
struct Welcome {
  rank @0 :UInt32;
  incarnation @1 :UInt64;
  profileWanted @2 :Bool;
}

# PS -> worker, any time: the connection ends after it.
struct Refuse {
  reason @0 :Text;
}

# Worker -> PS: measured layer times, forward order.
struct Profile {
  forwardNs @0 :List(Int64);
  backwardNs @1 :List(Int64);
}

struct Group {
  layerBegin @0 :UInt64;
  layerEnd @1 :UInt64;
  bytes @2 :UInt64;
  currentNs @3 :Int64;
  windowNs @4 :Int64;
  slotNs @5 :Int64;
  phase @6 :UInt32;  # due in iterations j with j mod period == phase
  delayNs @7 :Int64;
}

struct Plan {
  version @0 :UInt32;
  firstIteration @1 :UInt64;
  strategy @2 :UInt8;
  rule @3 :UInt8;
  phase @4 :UInt8;
  admission @5 :UInt8;
  period @6 :UInt32;
  workers @7 :UInt32;
  alpha @8 :Float64;
  beta @9 :Float64;
  groups @10 :List(Group);
  outerMomentum @11 :Float64;  # of the center's step; strategy diloco
  slotRule @12 :UInt8;
  slotClock @13 :UInt8;
}

# PS -> worker: all plans so far and where to start. The center follows, one message per chunk.
struct Begin {
  plans @0 :List(Plan);
  firstIteration @1 :UInt64;
  lastIteration @2 :UInt64;
}

struct ChunkId {
  group @0 :UInt32;
  iteration @1 :UInt64;  # 0: the center as a joining worker receives it
  chunk @2 :UInt32;
}

struct Round {
  group @0 :UInt32;
  iteration @1 :UInt64;
}

# Worker -> PS: the group is ready to be pushed, from its slot on. The answer is a turn, in time.
struct Announce {
  round @0 :Round;
  waitNs @1 :Int64;  # until the slot begins; 0 without slots
}

# Worker -> PS: what does your clock say? At joining and with each heartbeat.
struct Ping {
  number @0 :UInt64;
}

# PS -> worker, answer to Ping. Times of the PS's clock: when the ping had come, and right before
# this is written.
struct Pong {
  number @0 :UInt64;
  heardNs @1 :Int64;
  answeredNs @2 :Int64;
}

# PS -> worker, with slot clock shared: when backward begins at the worker that is last, on the PS's
# clock, in this iteration and those after it.
struct Rhythm {
  iteration @0 :UInt64;
  startNs @1 :Int64;
  iterationNs @2 :Int64;
}

# The PS's clock minus the worker's, as the worker estimates it.
struct ClockReading {
  offsetNs @0 :Int64;
  uncertaintyNs @1 :Int64;
}

# When a worker's backward of an iteration began, on the PS's clock.
struct BackwardStart {
  iteration @0 :UInt64;
  atNs @1 :Int64;
}

# A part of a group's values, both ways.
struct Chunk {
  id @0 :ChunkId;
  planVersion @1 :UInt32;
  codec @2 :UInt8;  # 0: float32
  present @3 :UInt32;  # center: how many workers' values are in it
  payload @4 :Data;
}

# Both ways. The worker's carries its progress.
struct Heartbeat {
  iteration @0 :UInt64;
  samples @1 :UInt64;
  loss @2 :Float64;
  exposedNs @3 :Int64;
  computeNs @4 :Int64;
  iterationNs @5 :List(Int64);  # durations since the last heartbeat, a bounded number of each
  latenessNs @6 :List(Int64);
  overrunNs @7 :List(Int64);
  roundTripNs @8 :Int64;  # of the worker's end of the connection, as retransmissions
  retransmissions @9 :UInt64;
  clock @10 :ClockReading;  # null: not known yet
  backward @11 :BackwardStart;  # the last; null: none yet
}

# PS -> worker: say how far you may go without hearing from me again.
struct Prepare {
  agreement @0 :UInt64;
}

# Worker -> PS: I do not begin an iteration after this one before your commit.
struct Promise {
  agreement @0 :UInt64;
  holdIteration @1 :UInt64;
}

# PS -> worker: the agreement's outcome; without plan and last iteration it only lifts the hold.
struct Commit {
  agreement @0 :UInt64;
  plan @1 :Plan;  # null: unchanged
  lastIteration @2 :UInt64;  # 0: unchanged
}

# Before the first plan. PS -> worker, without a payload: send so many bytes back. Worker -> PS, as
# the payload: here they are. What they are is of no meaning.
struct Probe {
  number @0 :UInt32;  # of the question, and of its answer
  bytes @1 :UInt64;
  payload @2 :Data;
}

# Worker -> PS, last message.
struct Farewell {
  early @0 :Bool;  # before the last iteration
  reason @1 :Text;
  progress @2 :Heartbeat;
  bytesPushed @3 :UInt64;
  bytesPulled @4 :UInt64;
  latenessCounts @5 :List(UInt64);
  pushCounts @6 :List(UInt64);
  readyToDoneCounts @7 :List(UInt64);
  iterationCounts @8 :List(UInt64);
  iterationsNs @9 :Int64;  # their sum
}
