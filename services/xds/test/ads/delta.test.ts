import t from 'tap';
import {
  type DeltaRequest,
  dueDelta,
  newDeltaExchange,
  receiveDelta,
  sentDelta,
} from '../../src/ads/delta.ts';
import { diffResources } from '../../src/ads/exchange.ts';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

type Request = Partial<Omit<DeltaRequest, 'initialVersions'>> & {
  readonly has?: Readonly<Record<string, string>>;
};

/**
 * An exchange that sends what is due, with the nonces 1, 2, …, and returns it as
 * `name=version … -removed …`.
 */
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
    /** The answer in a request, and what is sent after it. */
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

/** An exchange whose client has a wildcard subscription and has acknowledged `a=1 b=1`. */
function startAccepted() {
  const exchange = startExchange(testSnapshot({ a: 1, b: 1 }));
  exchange.request();
  exchange.request({ nonce: '1' });
  return exchange;
}

t.test('client without initial versions receives everything', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ nonce: '99', rejects: true }), ['none', 'a=1 b=1'], 'whatever it carries over');
});

t.test('client with initial versions receives the difference and the removals', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 2, c: 1 }));
  t.same(request({ has: { a: '1', b: '1', x: '1' } }), ['none', 'b=2 c=1 -x']);
});

t.test('first response is sent even if it is empty', async (t) => {
  t.same(startExchange(testSnapshot({})).request(), ['none', ''], 'there is nothing');
  t.same(startExchange(testSnapshot({ a: 1 })).request({ has: { a: '1' } }), ['none', ''], 'nothing is new');
});

t.test('nothing is sent before there is a snapshot', async (t) => {
  const { request, change } = startExchange();
  t.same(request({ has: { a: '1' } }), ['none', undefined]);
  t.equal(change({ b: 1 }), 'b=1 -a');
});

t.test('only changes are sent, removals by name', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 1, b: 2, c: 1 }), 'b=2 c=1');
  t.same(request({ nonce: '2' }), ['ack', undefined]);
  t.equal(change({ c: 1 }), '-a -b');
  t.same(request({ nonce: '3' }), ['ack', undefined]);
  t.equal(change({ c: 1 }), undefined);
});

t.test('one response at a time, and its answer triggers the difference to the latest', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 2, b: 1 }), 'a=2');
  t.equal(change({ a: 3, b: 1 }), undefined);
  t.equal(change({ a: 2, b: 1, c: 1 }), undefined);
  t.same(request({ nonce: '2' }), ['ack', 'c=1']);
});

t.test('request with another nonce is not an ACK, but changes the subscription', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ subscribe: ['a'] }), ['none', 'a=1']);
  t.same(request({ subscribe: ['b'] }), ['none', undefined], 'the response still waits for its answer');
  t.same(request({ nonce: '7', unsubscribe: ['x'] }), ['none', undefined], 'a stale nonce is none');
  t.same(request({ nonce: '1' }), ['ack', 'b=1']);
  t.same(request({ subscribe: ['c'] }), ['none', undefined]);
  t.same(request({ nonce: '2' }), ['ack', '-c']);
});

t.test('name without a resource is reported as removed once', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1 }));
  t.same(request({ subscribe: ['a', 'x'] }), ['none', 'a=1 -x']);
  request({ nonce: '1' });
  t.equal(change({ a: 1, b: 1 }), undefined);
  t.equal(change({ a: 1, x: 1 }), 'x=1');
});

t.test('name with an initial version is reported only if it changed or was removed', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 2 }));
  t.same(request({ subscribe: ['a', 'b', 'c'], has: { a: '1', b: '1', c: '1', other: '1' } }), [
    'none',
    'b=2 -c',
  ]);
});

t.test('name that is subscribed to again is sent again', async (t) => {
  const { request } = startAccepted();
  t.same(request({ subscribe: ['a'] }), ['none', 'a=1']);
});

t.test('name unsubscribed from under a wildcard is sent again or reported as removed', async (t) => {
  const { request } = startAccepted();
  t.same(request({ unsubscribe: ['a', 'x'] }), ['none', 'a=1 -x']);
});

t.test(
  'name unsubscribed from without a wildcard is not reported, and sent after the next subscription',
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

t.test('"*" adds the other resources, and without it only the names remain', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ subscribe: ['a'] }), ['none', 'a=1']);
  t.same(request({ nonce: '1', subscribe: ['*'] }), ['ack', 'b=1']);
  t.same(request({ nonce: '2', unsubscribe: ['*'] }), ['ack', undefined]);
  t.equal(change({ a: 1, b: 2 }), undefined);
  t.same(request({ subscribe: ['*'] }), ['none', 'b=2']);
});

t.test('resource dropped while a response was in flight is sent again', async (t) => {
  const { request, change } = startAccepted();
  t.equal(change({ a: 2, b: 1 }), 'a=2');
  t.same(request({ unsubscribe: ['*'] }), ['none', undefined]);
  t.same(request({ subscribe: ['*'] }), ['none', undefined]);
  t.same(request({ nonce: '2' }), ['ack', 'b=1']);
});

t.test('"*" is answered even if nothing is new', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1 }));
  request({ subscribe: ['a'] });
  t.same(request({ nonce: '1', subscribe: ['*'] }), ['ack', '']);
  t.same(request({ nonce: '2', subscribe: ['*'] }), ['ack', undefined], 'but not again and again');
});

t.test('rejected response is rejected as a whole and not sent again until it changes', async (t) => {
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

t.test('rejected resource is neither sent with later ones nor blocks them', async (t) => {
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

t.test('resources that a rejection does not name are sent again at once', async (t) => {
  const { request } = startExchange(testSnapshot({ a: 1, b: 1, c: 1 }));
  request();
  t.same(request({ nonce: '1', rejects: true, message: 'b: no' }), ['nack', 'a=1 c=1']);
  t.same(request({ nonce: '2' }), ['ack', undefined]);
});

t.test('client that rejects one resource after the other does not receive the rest forever', async (t) => {
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

t.test('accepted and rejected resources are known after each answer', async (t) => {
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

t.test('a version is sent again when the rejected one after it is withdrawn', async (t) => {
  const { request, change } = startAccepted();
  change({ a: 2, b: 1, c: 1 });
  request({ nonce: '2', rejects: true });
  t.equal(change({ a: 1, b: 1 }), 'a=1 -c', 'the client may have parts of the rejected response');
  t.same(request({ nonce: '3' }), ['ack', undefined]);
  change({ a: 2, b: 2 });
  change({ a: 2, b: 1 });
  t.same(request({ nonce: '4', rejects: true, message: 'a: no' }), ['nack', 'b=1'], 'not named');
});

t.test('lines about parts of a resource name the resource', async (t) => {
  const { request, change } = startAccepted();
  change({ a: 2, b: 2, c: 2 });
  t.same(request({ nonce: '2', rejects: true, message: 'a/x: no\nb/y: no' }), ['nack', 'c=2']);
  t.same(request({ nonce: '3' }), ['ack', undefined]);
  t.equal(change({ a: 3, b: 2, c: 2 }), 'a=3');
});

t.test('rejected resource subscribed to by name is not sent until it is requested again', async (t) => {
  const { request, change } = startAccepted();
  t.same(request({ subscribe: ['a', 'x'] }), ['none', 'a=1 -x']);
  t.same(request({ nonce: '2', rejects: true }), ['nack', undefined]);
  t.equal(change({ a: 1, b: 2 }), 'b=2');
  t.same(request({ nonce: '3', subscribe: ['a', 'x'] }), ['ack', 'a=1 -x']);
});

const before = testSnapshot({ a: 1, b: 1, c: 1 }).resources;

t.test('difference has new, changed and removed resources', async (t) => {
  const { changed, removed } = diffResources(before, testSnapshot({ a: 1, b: 2, d: 1 }).resources);
  t.same(
    changed.map(({ name }) => name),
    ['b', 'd'],
  );
  t.same(removed, ['c']);
  t.same(diffResources(before, before), { changed: [], removed: [] });
});
