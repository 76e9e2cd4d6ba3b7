import t from 'tap';
import { eventOf } from '../../src/domain/object-event.ts';
import { type Condition, type ObjectStatus, readyOf } from '../../src/domain/object-status.ts';

const condition = (status: Condition['status'], reason: string, message = reason): Condition => ({
  status,
  reason,
  message,
});

/** The status of an object of generation 2. */
function statusOf(accepted: Condition, programmed: Condition): ObjectStatus {
  return {
    id: 'shop/web',
    uid: 'uid-1',
    observedGeneration: 2,
    rules: 1,
    version: 'v1',
    limiters: { connected: 1, acknowledged: 1 },
    accepted,
    programmed,
  };
}

const accepted = condition('True', 'Accepted');
const invalid = condition('False', 'Invalid', 'spec: wrong');
const enforced = condition('True', 'Acknowledged', 'acknowledged by 1 of 1 limiter');

t.test('an object is ready when it is accepted and every limiter enforces it', async (t) => {
  const ready = (...conditions: Parameters<typeof statusOf>) => readyOf(statusOf(...conditions));
  t.strictSame(ready(accepted, enforced), { ...enforced, reason: 'Enforced' });
  t.strictSame(ready(invalid, condition('False', 'NotAccepted')), invalid);
  t.strictSame(ready(accepted, condition('False', 'Pending')), condition('False', 'Pending'));
  t.strictSame(ready(accepted, condition('Unknown', 'NoClients')), condition('Unknown', 'NoClients'));
});

t.test('refusals, conflicts and rejections are events, and nothing else is', async (t) => {
  const event = (...conditions: Parameters<typeof statusOf>) => eventOf(statusOf(...conditions));
  t.equal(event(accepted, enforced), undefined);
  t.equal(event(accepted, condition('False', 'Pending')), undefined);
  t.equal(event(accepted, condition('Unknown', 'NoClients')), undefined);
  const notAccepted = condition('False', 'NotAccepted');
  t.match(event(invalid, notAccepted), { action: 'Accept', reason: 'Invalid', note: 'spec: wrong' });
  t.match(event(condition('False', 'DomainConflict'), notAccepted), { reason: 'DomainConflict' });
  t.match(event(accepted, condition('False', 'Nacked', 'a says: no')), {
    action: 'Program',
    reason: 'Nacked',
  });
});

t.test('an event is the same one until there is something new', async (t) => {
  const keyOf = (status: ObjectStatus) => eventOf(status)?.key;
  const nacked = statusOf(accepted, condition('False', 'Nacked', 'refused by 1 of 2 limiters'));
  const more = condition('False', 'Nacked', 'refused by 2 of 2 limiters');
  t.equal(
    keyOf({ ...nacked, programmed: more }),
    keyOf(nacked),
    'whichever limiter rejects the same version',
  );
  t.not(keyOf({ ...nacked, version: 'v2' }), keyOf(nacked));
  const refused = statusOf(invalid, condition('False', 'NotAccepted'));
  t.not(keyOf({ ...refused, observedGeneration: 3 }), keyOf(refused));
  t.not(keyOf({ ...refused, uid: 'uid-2' }), keyOf(refused));
});
