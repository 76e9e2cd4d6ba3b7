import t from 'tap';
import { dueSotw, newSotwExchange, receiveSotw, type SotwRequest, sentSotw } from '../../src/ads/exchange.ts';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

/**
 * An exchange that sends what is due, with the nonces 1, 2, …, and returns it as `name=version …`.
 */
function startExchange(first?: Snapshot) {
  let exchange = newSotwExchange;
  let snapshot = first;
  let nonce = 0;
  const send = (): string | undefined => {
    const selection = snapshot && dueSotw(exchange, snapshot);
    if (selection === undefined) return undefined;
    nonce += 1;
    exchange = sentSotw(exchange, selection, String(nonce));
    return [...selection.resources.values()].map(({ name, version }) => `${name}=${version}`).join(' ');
  };
  return {
    /** The answer in a request, and what is sent after it. */
    request(request: Partial<SotwRequest> = {}): [answer: string, sent: string | undefined] {
      const received = receiveSotw(exchange, { names: [], nonce: '', rejects: false, ...request });
      exchange = received.exchange;
      return [received.answer.type, send()];
    },
    change(limits: Readonly<Record<string, number>>): string | undefined {
      snapshot = testSnapshot(limits);
      return send();
    },
    answerVersion(request: Partial<SotwRequest>): string | undefined {
      const { answer } = receiveSotw(exchange, { names: [], nonce: '', rejects: false, ...request });
      return answer.type === 'none' ? undefined : answer.snapshot.version;
    },
  };
}

t.test('rule 3: the first request is answered whatever nonce, version or error it carries', async (t) => {
  for (const carriedOver of [{}, { nonce: '1' }, { nonce: '99', rejects: true }]) {
    const { request } = startExchange(testSnapshot({ a: 1 }));
    t.same(request(carriedOver), ['none', 'a=1']);
  }
});

t.test('rule 4: a request with another nonce than the last is ignored, including its names', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
  request();
  t.same(request({ nonce: '1' }), ['ack', undefined]);
  t.equal(change({ a: 2, b: 1 }), 'a=2 b=1');
  for (const nonce of ['1', '0', '3', '']) {
    t.same(request({ nonce, names: ['b'] }), ['none', undefined], `nonce ${JSON.stringify(nonce)}`);
    t.same(request({ nonce, rejects: true }), ['none', undefined]);
  }
  t.same(request({ nonce: '2' }), ['ack', undefined], 'the response waited for its answer');
  t.equal(change({ a: 2, b: 2 }), 'a=2 b=2', 'and everything is still wanted');
});

t.test('rule 4: before the first response no nonce is stale', async (t) => {
  const { request, change } = startExchange();
  t.same(request({ nonce: '7' }), ['none', undefined]);
  t.same(request({ nonce: '8', names: ['b'] }), ['none', undefined]);
  t.equal(change({ a: 1, b: 1 }), 'b=1');
});

t.test('rule 5: an error detail makes a NACK, nothing else does', async (t) => {
  const { request, change, answerVersion } = startExchange(testSnapshot({ a: 1 }));
  request();
  t.equal(answerVersion({ nonce: '1', rejects: true }), testSnapshot({ a: 1 }).version);
  t.same(request({ nonce: '1', rejects: true }), ['nack', undefined]);
  change({ a: 2 });
  t.same(request({ nonce: '2' }), ['ack', undefined]);
});

t.test('rule 5: only the first answer to a response counts', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
  request();
  t.same(request({ nonce: '1', rejects: true }), ['nack', undefined]);
  t.same(request({ nonce: '1' }), ['none', undefined], 'what comes after a NACK is no ACK');
  t.equal(change({ a: 2 }), 'a=2');
  t.same(request({ nonce: '2' }), ['ack', undefined]);
  t.same(request({ nonce: '2', rejects: true }), ['none', undefined], 'nor a NACK what comes after an ACK');
});

t.test('rule 6: a rejected response is not sent again until its content changes', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1 }));
  request();
  t.same(request({ nonce: '1', rejects: true }), ['nack', undefined]);
  for (let round = 0; round < 10; round += 1) {
    t.same(request({ nonce: '1', rejects: true }), ['none', undefined]);
    t.equal(change({ a: 1 }), undefined);
  }
  t.equal(change({ a: 2 }), 'a=2');
  t.same(request({ nonce: '2' }), ['ack', undefined]);
  t.equal(change({ a: 1 }), 'a=1', 'it is another content again by then');
});

t.test(
  'rule 6: a client that reduces its subscription receives the rest, rejected before or not',
  async (t) => {
    const { request } = startExchange(testSnapshot({ a: 1, b: 1 }));
    request({ names: ['a', 'b'] });
    t.same(request({ nonce: '1', names: ['b'], rejects: true }), ['nack', 'b=1']);
  },
);

t.test('rule 7: an empty list after names unsubscribes until names are sent again', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
  t.same(request({ names: ['a'] }), ['none', 'a=1']);
  t.same(request({ nonce: '1', names: [] }), ['ack', undefined]);
  t.equal(change({ a: 2, b: 1 }), undefined);
  t.equal(change({ a: 1, b: 1 }), undefined);
  t.same(request({ nonce: '1', names: ['a'] }), ['none', 'a=1'], 'even what it had before');
  t.same(request({ nonce: '2', names: ['*'] }), ['ack', 'a=1 b=1']);
});

t.test('change outside the subscription is not sent', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1 }));
  request({ names: ['a'] });
  request({ nonce: '1', names: ['a'] });
  t.equal(change({ a: 1, b: 2, c: 1 }), undefined);
  t.equal(change({ a: 2 }), 'a=2');
});

t.test('rule 8: every response is the complete set, including the last removal', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1, b: 1, c: 1 }));
  request();
  request({ nonce: '1' });
  t.equal(change({ a: 1, b: 2, c: 1 }), 'a=1 b=2 c=1');
  request({ nonce: '2' });
  t.equal(change({ a: 1 }), 'a=1');
  request({ nonce: '3' });
  t.equal(change({}), '');
});

t.test('rule 9: nothing is sent before there is a snapshot, an empty one is sent', async (t) => {
  const { request, change } = startExchange();
  t.same(request(), ['none', undefined]);
  t.equal(change({}), '');
});

t.test('rule 12: one response at a time, and its answer triggers the latest', async (t) => {
  const { request, change } = startExchange(testSnapshot({ a: 1 }));
  request();
  for (const limit of [2, 3, 4]) t.equal(change({ a: limit }), undefined);
  t.same(request({ nonce: '1' }), ['ack', 'a=4']);
  change({ a: 5 });
  change({ a: 4 });
  t.same(request({ nonce: '2' }), ['ack', undefined], 'nothing, when all is as it was');
});
