import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import type { Client } from '../../src/ads/clients.ts';
import type { Condition, ValidationResult } from '../../src/catalog/validation-result.ts';
import { groupClients, indexSubscribers } from '../../src/status/client-groups.ts';
import { countLimiters, notServed, toDomainStatus } from '../../src/status/domain-status.ts';
import { toEvent } from '../../src/status/events.ts';
import { type ObjectStatus, toObjectStatus, toReady } from '../../src/status/object-status.ts';
import { makeLimiter, makeRejection, versions } from '../support/limiters.ts';

const subscribersOf = (...clients: readonly Client[]) => runSteps(indexSubscribers(groupClients(clients)));

/** Limiters of a domain, by whether they have a version. */
const count = (clients: readonly Client[], domain: string, version: string) =>
  countLimiters({ name: domain, version }, subscribersOf(...clients));

const progress = (clients: readonly Client[], domain = 'shop', version = '2') =>
  toDomainStatus({ name: domain, version }, subscribersOf(...clients));

const current = versions({ shop: '2', web: '1' });
const old = versions({ shop: '1', web: '1' });

t.test('without limiters the condition is unknown', async (t) => {
  t.match(progress([]), { isAcknowledged: false, programmed: { status: 'Unknown', reason: 'NoClients' } });
});

t.test('condition is true when every limiter has accepted the version', async (t) => {
  t.strictSame(
    progress([makeLimiter('a', { accepted: current }), makeLimiter('b', { accepted: new Map(current) })]),
    {
      version: '2',
      isAcknowledged: true,
      programmed: {
        status: 'True',
        reason: 'Acknowledged',
        message: 'acknowledged by all connected limiters',
      },
    },
  );
});

t.test('acknowledged version stays acknowledged, whichever limiters join and leave', async (t) => {
  const shop = { name: 'shop', version: '2' };
  const before = toDomainStatus(shop, subscribersOf(makeLimiter('a', { accepted: current })));
  const joined = [
    makeLimiter('a', { accepted: current }),
    makeLimiter('b'),
    makeLimiter('c', { accepted: old }),
  ];
  t.equal(toDomainStatus(shop, subscribersOf(...joined), { before }), before);
  t.equal(toDomainStatus(shop, subscribersOf(), { before }), before);
  t.match(toDomainStatus({ ...shop, version: '3' }, subscribersOf(...joined), { before }), {
    version: '3',
    isAcknowledged: false,
    programmed: { reason: 'Pending' },
  });
});

t.test('acknowledged version is not programmed while a limiter rejects it by its name', async (t) => {
  const shop = { name: 'shop', version: '2' };
  const good = makeLimiter('a', { accepted: current });
  const joinedWith = (message: string) =>
    subscribersOf(good, makeLimiter('b', { rejection: makeRejection(current, message) }));
  const before = toDomainStatus(shop, subscribersOf(good));
  const rejected = toDomainStatus(shop, joinedWith('shop: no'), { before });
  t.match(rejected.programmed, {
    status: 'False',
    reason: 'Nacked',
    message: 'refused by limiter-b: shop: no',
  });
  t.strictSame(toDomainStatus(shop, subscribersOf(good), { before: rejected }), before);
  t.equal(toDomainStatus(shop, joinedWith('web: no'), { before }), before);
  t.equal(toDomainStatus(shop, joinedWith('out of memory'), { before }), before, 'metrics show this one');
});

t.test(
  'version that the only limiter behind has not acknowledged is programmed when it leaves',
  async (t) => {
    const shop = { name: 'shop', version: '2' };
    const good = makeLimiter('a', { accepted: current });
    const before = toDomainStatus(shop, subscribersOf(good, makeLimiter('b', { accepted: old })));
    t.match(before.programmed, { reason: 'Pending', message: 'limiter-b has not acknowledged it' });
    t.match(toDomainStatus(shop, subscribersOf(good), { before }).programmed, { status: 'True' });
  },
);

t.test('nothing is acknowledged by all before limiters have had time to reconnect', async (t) => {
  const shop = { name: 'shop', version: '2' };
  const good = subscribersOf(makeLimiter('a', { accepted: current }));
  const before = toDomainStatus(shop, good, { isStarting: true });
  t.match(before.programmed, { status: 'False', reason: 'Pending', message: /has just started/ });
  t.match(toDomainStatus(shop, good, { before }).programmed, { status: 'True' });
});

t.test('limiter without an answer or with another version is pending', async (t) => {
  t.match(
    progress([
      makeLimiter('a', { accepted: current }),
      makeLimiter('b'),
      makeLimiter('c', { accepted: old }),
    ]),
    {
      isAcknowledged: false,
      programmed: { status: 'False', reason: 'Pending', message: 'limiter-b has not acknowledged it' },
    },
  );
});

t.test('rejection has the message and name of the limiter', async (t) => {
  const rejection = makeRejection(current, 'out of memory');
  const { programmed } = progress([
    makeLimiter('a', { accepted: current }),
    makeLimiter('b', { accepted: old, rejection }),
    makeLimiter('c', { nodeId: '', accepted: old, rejection }),
  ]);
  t.strictSame(programmed, {
    status: 'False',
    reason: 'Nacked',
    message: 'refused by 127.0.0.1:1: out of memory',
  });
});

t.test('limiter without a node id is named by its address', async (t) => {
  const rejection = makeRejection(current, 'no');
  t.match(
    progress([makeLimiter('a', { nodeId: '', rejection })]).programmed.message,
    /refused by 127\.0\.0\.1:1: no$/,
  );
});

t.test('rejection that names no domain concerns every new domain', async (t) => {
  const clients = [makeLimiter('a', { accepted: old, rejection: makeRejection(current, 'no') })];
  t.equal(progress(clients).programmed.reason, 'Nacked');
  t.match(progress(clients, 'web', '1').programmed, { reason: 'Acknowledged' });
});

t.test('rejection that names a domain concerns it, and others are pending with the reason', async (t) => {
  const set = versions({ shop: '2', 'shop:eu': '2', web: '2' });
  const rejection = makeRejection(set, 'shop:eu: duplicate key\nshop:eu: invalid unit\nmore of it');
  const clients = [makeLimiter('a', { accepted: old, rejection })];
  t.match(progress(clients, 'shop:eu', '2').programmed, {
    reason: 'Nacked',
    message: 'refused by limiter-a: shop:eu: duplicate key\nshop:eu: invalid unit',
  });
  t.match(progress(clients, 'web', '2').programmed, {
    reason: 'Pending',
    message: "limiter-a refused everything because of domain 'shop:eu'",
  });
});

t.test('rejection of an earlier version is ignored', async (t) => {
  const rejection = makeRejection(old, 'no');
  t.equal(progress([makeLimiter('a', { rejection })]).programmed.reason, 'Pending');
});

t.test('limiter that subscribes to other domains is not waited for', async (t) => {
  const elsewhere = makeLimiter('b', { names: new Set(['web']), accepted: versions({ web: '1' }) });
  const clients = [makeLimiter('a', { accepted: current }), elsewhere];
  t.match(progress(clients), { programmed: { reason: 'Acknowledged' } });
  t.match(count(clients, 'shop', '2'), { connected: 1, acknowledged: 1 });
  t.match(count(clients, 'web', '1'), { connected: 2, acknowledged: 2 });
  t.match(progress([elsewhere]), {
    programmed: { reason: 'NoClients', message: 'no limiter that asks for this domain is connected' },
  });
});

t.test('rules without a class do not wait for limiters of a class', async (t) => {
  const slow = makeLimiter('dev', { limiterClass: 'dev' });
  const rejecting = makeLimiter('b', {
    limiterClass: 'dev',
    rejection: makeRejection(current, 'shop: no'),
  });
  t.match(progress([makeLimiter('a', { accepted: current }), slow, rejecting]).programmed, {
    status: 'True',
  });
  t.match(progress([slow]).programmed, { reason: 'Pending', message: /limiter-dev/ }, 'it is the only one');
});

t.test('rules of a class wait for limiters of this class only', async (t) => {
  const shop = { name: 'shop', version: '2', limiterClass: 'dev' };
  const others = [makeLimiter('a', { accepted: old }), makeLimiter('b', { limiterClass: 'edge' })];
  t.match(toDomainStatus(shop, subscribersOf(...others)).programmed, {
    reason: 'NoClients',
    message: "no limiter of class 'dev' that asks for this domain is connected",
  });
  const dev = makeLimiter('dev', { limiterClass: 'dev', accepted: current });
  t.match(toDomainStatus(shop, subscribersOf(...others, dev)).programmed, { status: 'True' });
});

t.test('where every limiter has a class, rules without one wait for all that get them', async (t) => {
  const shop = { name: 'shop', version: '2' };
  const groups = groupClients([
    makeLimiter('a', { limiterClass: 'edge', accepted: current }),
    makeLimiter('b', { limiterClass: 'dev', accepted: versions({ shop: 'own' }) }),
  ]);
  const subscribers = runSteps(indexSubscribers(groups, (limiterClass) => limiterClass === 'dev'));
  t.match(toDomainStatus(shop, subscribers).programmed, { status: 'True' });
});

t.test('limiter that subscribes to the domain by name is waited for', async (t) => {
  t.match(progress([makeLimiter('a', { names: new Set(['shop']) })]), {
    programmed: { reason: 'Pending' },
  });
});

t.test('object whose domain is not served is pending', async (t) => {
  t.match(toObjectStatus(result, notServed), {
    version: '',
    programmed: { reason: 'Pending', message: 'not served yet' },
  });
});

t.test('limiters with the same accepted versions are one group', async (t) => {
  const clients = Array.from({ length: 500 }, (_, i) =>
    makeLimiter(`${i}`, { accepted: i % 2 === 0 ? current : old }),
  );
  t.strictSame(
    groupClients(clients).map(({ size, example }) => `${size} ${example}`),
    ['250 limiter-0', '250 limiter-1'],
  );
});

t.test('limiter is named by the identity of its certificate, whatever its node id', async (t) => {
  const rejection = makeRejection(current, 'no');
  const identity = 'spiffe://tollgate/ns/other/limiter';
  const { message } = progress([makeLimiter('a', { nodeId: 'limiter-1', identity, rejection })]).programmed;
  t.equal(message, `refused by limiter-1 (${identity}): no`);
});

const result: ValidationResult = {
  id: 'ns/a',
  uid: 'u',
  generation: 2,
  label: 'ns/a',
  domain: 'shop',
  inForce: 2,
  rules: 3,
  domainOwner: undefined,
  accepted: { status: 'True', reason: 'Accepted', message: '3 limits' },
};
const invalid: ValidationResult = {
  ...result,
  accepted: { status: 'False', reason: 'Invalid', message: 'bad' },
};
const domainStatus = toDomainStatus(
  { name: 'shop', version: 'v' },
  runSteps(indexSubscribers(groupClients([makeLimiter('a', { accepted: versions({ shop: 'v' }) })]))),
);

t.test('accepted object has the progress of its domain', async (t) => {
  t.strictSame(toObjectStatus(result, domainStatus), {
    id: 'ns/a',
    uid: 'u',
    observedGeneration: 2,
    rules: 3,
    version: 'v',
    accepted: { status: 'True', reason: 'Accepted', message: '3 limits' },
    programmed: { status: 'True', reason: 'Acknowledged', message: 'acknowledged by all connected limiters' },
  });
});

t.test('edit that is not accepted is not programmed, and the status says what is in force', async (t) => {
  t.match(toObjectStatus({ ...invalid, inForce: 1 }, domainStatus), {
    observedGeneration: 2,
    version: 'v',
    programmed: {
      status: 'False',
      reason: 'NotAccepted',
      message: 'generation 1, which stays in force: acknowledged by all connected limiters',
    },
  });
  t.match(toObjectStatus(invalid, domainStatus).programmed, {
    reason: 'NotAccepted',
    message: 'what is accepted of generation 2: acknowledged by all connected limiters',
  });
});

t.test('object without rules in force has no version', async (t) => {
  t.match(toObjectStatus({ ...invalid, inForce: undefined, rules: 0 }, domainStatus), {
    version: '',
    programmed: { status: 'False', reason: 'NotAccepted', message: 'nothing of this object is in force' },
  });
});

const condition = (status: Condition['status'], reason: string, message = reason): Condition => ({
  status,
  reason,
  message,
});

/** The status of an object of generation 2. */
function statusWith(accepted: Condition, programmed: Condition): ObjectStatus {
  return {
    id: 'shop/web',
    uid: 'uid-1',
    observedGeneration: 2,
    rules: 1,
    version: 'v1',
    accepted,
    programmed,
  };
}

const accepted = condition('True', 'Accepted');
const invalidCondition = condition('False', 'Invalid', 'spec: wrong');
const enforced = condition('True', 'Acknowledged', 'acknowledged by 1 of 1 limiter');

t.test('object is ready when it is accepted and every limiter enforces it', async (t) => {
  const ready = (...conditions: Parameters<typeof statusWith>) => toReady(statusWith(...conditions));
  t.strictSame(ready(accepted, enforced), { ...enforced, reason: 'Enforced' });
  t.strictSame(ready(invalidCondition, condition('False', 'NotAccepted')), invalidCondition);
  t.strictSame(ready(accepted, condition('False', 'Pending')), condition('False', 'Pending'));
  t.strictSame(ready(accepted, condition('Unknown', 'NoClients')), condition('Unknown', 'NoClients'));
});

t.test('invalid objects, conflicts and rejections are events', async (t) => {
  const event = (...conditions: Parameters<typeof statusWith>) => toEvent(statusWith(...conditions));
  t.equal(event(accepted, enforced), undefined);
  t.equal(event(accepted, condition('False', 'Pending')), undefined);
  t.equal(event(accepted, condition('Unknown', 'NoClients')), undefined);
  const notAccepted = condition('False', 'NotAccepted');
  t.match(event(invalidCondition, notAccepted), { action: 'Accept', reason: 'Invalid', note: 'spec: wrong' });
  t.match(event(condition('False', 'DomainConflict'), notAccepted), { reason: 'DomainConflict' });
  t.match(event(accepted, condition('False', 'Nacked', 'a says: no')), {
    action: 'Program',
    reason: 'Nacked',
  });
});

t.test('event is the same until something changes', async (t) => {
  const readKey = (status: ObjectStatus) => toEvent(status)?.key;
  const nacked = statusWith(accepted, condition('False', 'Nacked', 'refused by 1 of 2 limiters'));
  const more = condition('False', 'Nacked', 'refused by 2 of 2 limiters');
  t.equal(
    readKey({ ...nacked, programmed: more }),
    readKey(nacked),
    'whichever limiter rejects the same version',
  );
  t.not(readKey({ ...nacked, version: 'v2' }), readKey(nacked));
  const refused = statusWith(invalidCondition, condition('False', 'NotAccepted'));
  t.not(readKey({ ...refused, observedGeneration: 3 }), readKey(refused));
  t.not(readKey({ ...refused, uid: 'uid-2' }), readKey(refused));
});
