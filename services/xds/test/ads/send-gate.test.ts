import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { type Sender, SendGate } from '../../src/ads/send-gate.ts';
import { manualSchedule } from '../support/manual-schedule.ts';

const stallMs = 1_000;

/** A gate, and streams that write one response each as soon as there is capacity. */
function startGate(maxBytes: number) {
  const clock = fakeClock();
  const timers = manualSchedule();
  const gate = new SendGate({ maxBytes, stallMs, now: clock.now, schedule: timers.schedule });
  const sent: string[] = [];
  const cut: string[] = [];
  const leave = new Map<string, () => void>();

  function sender(name: string, { peer = name, acknowledged = true, bytes = 1 } = {}): Sender {
    const self: Sender = {
      peer,
      hasAcknowledged: () => acknowledged,
      retry() {
        const release = gate.enter(self, bytes);
        if (release === undefined) return;
        sent.push(name);
        leave.set(name, release);
      },
      cutOff() {
        cut.push(name);
        gate.leave(self);
      },
    };
    return self;
  }

  return {
    gate,
    sent,
    cut,
    sender,
    send: (name: string, options?: Parameters<typeof sender>[1]) => sender(name, options).retry(),
    read: (name: string) => leave.get(name)?.(),
    /** Advances time to the next check for stalled streams. */
    wait(ms: number) {
      clock.advance(ms);
      timers.advance(stallMs / 4);
    },
  };
}

t.test('waiting senders are served in order of arrival when capacity is released', async (t) => {
  const { send, read, sent } = startGate(80);
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) send(name, { bytes: 10 });
  send('first', { bytes: 10 });
  send('second', { bytes: 10 });
  t.equal(sent.length, 8);
  read('b');
  t.same(sent.slice(8), ['first'], 'no more than fits');
  read('b');
  t.same(sent.slice(8), ['first'], 'what was given back is given back once');
  read('a');
  t.same(sent.slice(8), ['first', 'second']);
});

t.test('peer takes at most an eighth of the capacity', async (t) => {
  const { send, read, sent } = startGate(80);
  for (let index = 0; index < 100; index += 1) send(`greedy-${index}`, { peer: 'greedy' });
  t.equal(sent.length, 10);
  send('other');
  t.equal(sent.at(-1), 'other');
  read('greedy-3');
  t.equal(sent.at(-1), 'greedy-10', 'its own streams wait for each other');
});

t.test('half of the capacity is reserved for clients with an ACK', async (t) => {
  const { send, sent } = startGate(80);
  for (let index = 0; index < 100; index += 1) send(`new-${index}`, { acknowledged: false });
  t.equal(sent.length, 40);
  for (let index = 0; index < 40; index += 1) send(`known-${index}`);
  t.equal(sent.length, 80);
});

t.test('half of the share of a peer is reserved for its clients with an ACK', async (t) => {
  const { send, sent } = startGate(80);
  const peer = 'proxy';
  for (let index = 0; index < 100; index += 1) send(`new-${index}`, { peer, acknowledged: false });
  t.equal(sent.length, 5);
  send('known', { peer });
  t.equal(sent.at(-1), 'known');
});

t.test('peers are served round-robin, clients with an ACK first', async (t) => {
  const { send, read, sent } = startGate(1);
  send('large');
  send('new', { acknowledged: false });
  for (const name of ['a1', 'a2', 'a3']) send(name, { peer: 'a' });
  for (const name of ['b1', 'b2']) send(name, { peer: 'b' });
  for (let turn = 0; turn < 6; turn += 1) read(sent.at(-1) ?? '');
  t.same(sent, ['large', 'a1', 'b1', 'a2', 'b2', 'a3', 'new']);
});

t.test('no response overtakes a large one that waits', async (t) => {
  const { send, read, sent } = startGate(100);
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) send(name, { bytes: 10 });
  send('large', { bytes: 80 });
  send('small', { bytes: 10 });
  t.equal(sent.length, 6, 'although the small one would fit');
  for (const name of ['a', 'b', 'c', 'd']) read(name);
  t.same(sent.slice(6), ['large']);
  read('e');
  t.same(sent.slice(6), ['large', 'small']);
});

t.test('response larger than the capacity is admitted alone', async (t) => {
  const { send, read, sent } = startGate(100);
  send('huge', { bytes: 1_000 });
  send('next');
  t.same(sent, ['huge']);
  read('huge');
  t.same(sent, ['huge', 'next']);
});

t.test('sender that leaves the queue is not called', async (t) => {
  const { gate, send, read, sender, sent } = startGate(1);
  send('first');
  const waiting = sender('waiting');
  waiting.retry();
  gate.leave(waiting);
  read('first');
  t.same(sent, ['first']);
});

t.test('while others wait, the longest stalled stream is cut', async (t) => {
  const { send, wait, sent, cut } = startGate(2);
  send('slow');
  wait(600);
  send('slower');
  wait(stallMs);
  t.same(cut, [], 'nothing waits');
  send('waiting');
  wait(0);
  t.same(cut, ['slow']);
  t.same(sent, ['slow', 'slower', 'waiting']);
});

t.test('only as many stalled streams are cut as others wait for', async (t) => {
  const { send, wait, sent, cut } = startGate(80);
  for (let index = 0; index < 10; index += 1) send(`stalled-${index}`, { peer: 'same' });
  send('elsewhere');
  for (let index = 0; index < 3; index += 1) send(`waiting-${index}`, { peer: 'same' });
  t.equal(sent.length, 11);
  wait(stallMs - 1);
  t.same(cut, []);
  wait(1);
  t.same(cut, ['stalled-0', 'stalled-1', 'stalled-2']);
  t.equal(sent.length, 14);
  wait(10 * stallMs);
  t.equal(cut.length, 3, 'nothing waits any more');
});
