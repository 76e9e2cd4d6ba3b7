import t from 'tap';
import {
  type DeltaRequest,
  dueDelta,
  newDeltaExchange,
  receiveDelta,
  sentDelta,
} from '../../src/ads/delta.ts';
import { diffResources } from '../../src/ads/subscription.ts';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

type Request = Partial<Omit<DeltaRequest, 'initialVersions'>> & {
  readonly has?: Readonly<Record<string, string>>;
};

/** An exchange that sends whatever is due, under the nonces 1, 2, …, and says what that was: `name=version … -removed …`. */
function startExchange(first?: Snapshot) {
  let exchange = newDeltaExchange;
  let snapshot = first;
  let nonce = 0;
  const send = (): string | undefined => {
    const reply = snapshot && dueDelta(exchange, snapshot);
    if (reply === undefined) return undefined;
    nonce += 1;
    exchange = sentDelta(exchange, reply, String(nonce));
    const { changed, removed } = reply.diff;
    return [
      ...changed.map(({ name, version }) => `${name}=${version}`),
      ...removed.map((name) => `-${name}`),
    ].join(' ');
  };
  return {
    /** What a request makes of the response before it, and what is sent thereupon. */
    request({ has = {}, ...request }: Request = {}): [answer: string, sent: string | undefined] {
      const received = receiveDelta(exchange, {
        subscribe: [],
        unsubscribe: [],
        nonce: '',
        rejects: false,
        ...request,
        initialVersions: new Map(Object.entries(has)),
      });
      exchange = received.exchange;
      return [received.answer.type, send()];
    },
    change(limits: Readonly<Record<string, number>>): string | undefined {
      snapshot = testSnapshot(limits);
      return send();
    },
  };
}

/** One that has sent `a=1 b=1` to a client that wants everything, and was told that it is accepted. */
function startAccepted() {
  const exchange = startExchange(testSnapshot({ a: 1, b: 1 }));
  exchange.request();
  exchange.request({ nonce: '1' });
  return exchange;
}

t.test('who brings nothing gets everything', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ nonce: '99', rejects: true }), ['none', 'a=1 b=1'], 'whatever it carries over');
});

t.test('who brings versions gets what differs, and is told what is gone', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 2, c: 1 }));
  t.same(request({ has: { a: '1', b: '1', x: '1' } }), ['none', 'b=2 c=1 -x']);
});

t.test('the first response comes even if it is empty', async (t) => {
  t.same(startExchange(testSnapshot({})).request(), ['none', ''], 'there is nothing');
  t.same(startExchange(testSnapshot({ a: 1 })).request({ has: { a: '1' } }), ['none', ''], 'nothing is new');
});

t.test('nothing is sent before there is a snapshot', async (t) => {
  const { request, change } = startExchange();
  t.same(request({ has: { a: '1' } }), ['none', undefined]);
  t.equal(change({ b: 1 }), 'b=1 -a');
});

t.test('only what changes is sent, and what is gone is named', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 1, b: 2, c: 1 }), 'b=2 c=1');
  t.same(request({ nonce: '2' }), ['ack', undefined]);
  t.equal(change({ c: 1 }), '-a -b');
  t.same(request({ nonce: '3' }), ['ack', undefined]);
  t.equal(change({ c: 1 }), undefined);
});

t.test('one response at a time; its answer brings the difference to the latest', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 2, b: 1 }), 'a=2');
  t.equal(change({ a: 3, b: 1 }), undefined);
  t.equal(change({ a: 2, b: 1, c: 1 }), undefined);
  t.same(request({ nonce: '2' }), ['ack', 'c=1']);
});

t.test('a request without the nonce of the response is no ACK, but its subscription counts', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ subscribe: ['a'] }), ['none', 'a=1']);
  t.same(request({ subscribe: ['b'] }), ['none', undefined], 'the response still waits for its answer');
  t.same(request({ nonce: '7', unsubscribe: ['x'] }), ['none', undefined], 'a stale nonce is none');
  t.same(request({ nonce: '1' }), ['ack', 'b=1']);
  t.same(request({ subscribe: ['c'] }), ['none', undefined]);
  t.same(request({ nonce: '2' }), ['ack', '-c']);
});

t.test('a name of which there is no resource is told of as removed, once', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1 }));
  t.same(request({ subscribe: ['a', 'x'] }), ['none', 'a=1 -x']);
  request({ nonce: '1' });
  t.equal(change({ a: 1, b: 1 }), undefined);
  t.equal(change({ a: 1, x: 1 }), 'x=1');
});

t.test('a name brought along in a version is told of only if that differs or is gone', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 2 }));
  t.same(request({ subscribe: ['a', 'b', 'c'], has: { a: '1', b: '1', c: '1', other: '1' } }), [
    'none',
    'b=2 -c',
  ]);
});

t.test('a name subscribed to once more is sent once more', async (t) => {
  const { request } = startAccepted();
  t.same(request({ subscribe: ['a'] }), ['none', 'a=1']);
});

t.test('a name unsubscribed from under a wildcard is sent again, or told of as removed', async (t) => {
  const { request } = startAccepted();
  t.same(request({ unsubscribe: ['a', 'x'] }), ['none', 'a=1 -x']);
});

t.test(
  'a name unsubscribed from without a wildcard is told of no more, and sent when it is wanted again',
  async (t) => {
    const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
    request({ subscribe: ['a', 'b'] });
    t.same(request({ nonce: '1', unsubscribe: ['a'] }), ['ack', undefined]);
    t.equal(change({ a: 2, b: 1 }), undefined);
    t.equal(change({ b: 1 }), undefined);
    t.equal(change({ a: 2, b: 1 }), undefined);
    t.same(request({ subscribe: ['a'] }), ['none', 'a=2']);
    t.same(request({ nonce: '2', unsubscribe: ['a', 'b'] }), ['ack', undefined]);
    t.equal(change({ a: 3, b: 2 }), undefined, 'nothing is wanted any more');
  },
);

t.test('"*" brings the rest, and without it only the names stay', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ subscribe: ['a'] }), ['none', 'a=1']);
  t.same(request({ nonce: '1', subscribe: ['*'] }), ['ack', 'b=1']);
  t.same(request({ nonce: '2', unsubscribe: ['*'] }), ['ack', undefined]);
  t.equal(change({ a: 1, b: 2 }), undefined);
  t.same(request({ subscribe: ['*'] }), ['none', 'b=2']);
});

t.test('what a client dropped while a response was on the way, it gets again', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 2, b: 1 }), 'a=2');
  t.same(request({ unsubscribe: ['*'] }), ['none', undefined]);
  t.same(request({ subscribe: ['*'] }), ['none', undefined]);
  t.same(request({ nonce: '2' }), ['ack', 'b=1']);
});

t.test('"*" is answered even if there is nothing more', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1 }));
  request({ subscribe: ['a'] });
  t.same(request({ nonce: '1', subscribe: ['*'] }), ['ack', '']);
  t.same(request({ nonce: '2', subscribe: ['*'] }), ['ack', undefined], 'but not again and again');
});

t.test('a rejected response is rejected as a whole, and not sent again until it differs', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 2, c: 1 }), 'a=2 c=1 -b');
  t.same(request({ nonce: '2', rejects: true }), ['nack', undefined]);
  for (let round = 0; round < 10; round += 1) {
    t.same(request({ nonce: '2', rejects: true }), ['none', undefined]);
    t.equal(change({ a: 2, c: 1 }), undefined);
  }
  t.equal(change({ a: 3, c: 1 }), 'a=3', 'what has not changed is not sent again');
  t.same(request({ nonce: '3' }), ['ack', undefined]);
});

t.test('a rejected resource neither comes along with later ones nor holds them up', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 2, b: 1 }), 'a=2');
  t.same(request({ nonce: '2', rejects: true, message: 'a: no' }), ['nack', undefined]);
  t.equal(change({ a: 2, b: 2 }), 'b=2');
  t.same(request({ nonce: '3' }), ['ack', undefined]);
  t.equal(change({ a: 2, b: 2, c: 1 }), 'c=1');
  t.same(request({ nonce: '4' }), ['ack', undefined]);
  t.equal(change({ a: 3, b: 2, c: 1 }), 'a=3');
  t.same(request({ nonce: '5' }), ['ack', undefined]);
});

t.test('of a rejected response, what the client does not blame is sent again at once', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 1, c: 1 }));
  request();
  t.same(request({ nonce: '1', rejects: true, message: 'b: no' }), ['nack', 'a=1 c=1']);
  t.same(request({ nonce: '2' }), ['ack', undefined]);
});

t.test('a client that blames one resource after the other is not sent the rest for ever', async (t) => {
  const names = Array.from({ length: 100 }, (_, index) => `n${index + 100}`);
  const { request } = startExchange(testSnapshot(Object.fromEntries(names.map((name) => [name, 1]))));
  request();
  let answers = 0;
  for (let sent: string | undefined = ''; sent !== undefined; answers += 1) {
    const message = `${names[answers]}: no`;
    sent = request({ nonce: String(answers + 1), rejects: true, message })[1];
  }
  t.equal(answers, 17);
});

t.test('what a client has and what it rejects is known after each answer', async (t) => {
  const snapshot = testSnapshot({ a: 2, b: 2 });
  const empty = { subscribe: [], unsubscribe: [], nonce: '', rejects: false };
  const initialVersions = new Map([['a', '1']]);
  let { exchange } = receiveDelta(newDeltaExchange, { ...empty, initialVersions });
  const answer = (nonce: string, message?: string) => {
    const reply = dueDelta(exchange, snapshot);
    if (reply === undefined) throw new Error('nothing is due');
    const received = receiveDelta(sentDelta(exchange, reply, nonce), {
      ...empty,
      initialVersions,
      nonce,
      rejects: message !== undefined,
      ...(message !== undefined && { message }),
    });
    exchange = received.exchange;
    return received.answer;
  };
  const rejected = answer('1', 'a: no');
  t.match(rejected, { type: 'nack', rejected: { message: 'a: no' } });
  const accepted = answer('2');
  if (accepted.type !== 'ack') throw new Error(accepted.type);
  t.same(
    [...accepted.accepted].map(([name, { version }]) => `${name}=${version}`),
    ['a=1', 'b=2'],
    'the version before the rejected one',
  );
  t.same([...(accepted.rejected?.resources ?? [])], [['a', { version: '2', message: 'a: no' }]]);
});

t.test(
  'a rejected change that is taken back is answered, so that the client can say it is content',
  async (t) => {
    const { request, change } = startAccepted();
    change({ a: 2, b: 1 });
    request({ nonce: '2', rejects: true });
    t.equal(change({ a: 1, b: 1 }), '');
    t.same(request({ nonce: '3' }), ['ack', undefined]);
  },
);

t.test(
  'a rejected resource subscribed to by name is not sent again until it is requested again',
  async (t) => {
    const { request, change } = startAccepted();
    t.same(request({ subscribe: ['a', 'x'] }), ['none', 'a=1 -x']);
    t.same(request({ nonce: '2', rejects: true }), ['nack', undefined]);
    t.equal(change({ a: 1, b: 2 }), 'b=2');
    t.same(request({ nonce: '3', subscribe: ['a', 'x'] }), ['ack', 'a=1 -x']);
  },
);

const before = testSnapshot({ a: 1, b: 1, c: 1 }).resources;

t.test('a difference has what is new or of another version, and what is gone', async (t) => {
  const { changed, removed } = diffResources(before, testSnapshot({ a: 1, b: 2, d: 1 }).resources);
  t.same(
    changed.map(({ name }) => name),
    ['b', 'd'],
  );
  t.same(removed, ['c']);
  t.same(diffResources(before, before), { changed: [], removed: [] });
});
