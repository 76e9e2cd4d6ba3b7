import t from 'tap';
import { createSendGate } from '../../../src/surfaces/grpc/send-gate.ts';

t.test('who finds no room is called when there is some, in the order in which they came', async (t) => {
  const gate = createSendGate(100);
  const called: string[] = [];
  const leave = gate.enter(60, () => undefined);
  const leaveToo = gate.enter(40, () => undefined);
  t.ok(leave && leaveToo, 'as much as there is room for');
  const enterLater = (name: string) => (): void => {
    called.push(name);
    gate.enter(50, () => undefined);
  };
  t.equal(gate.enter(50, enterLater('first')), undefined);
  t.equal(gate.enter(50, enterLater('second')), undefined);
  leave?.();
  t.same(called, ['first'], 'no more than there is room for');
  leave?.();
  t.same(called, ['first'], 'what was given back is given back once');
  leaveToo?.();
  t.same(called, ['first', 'second']);
});

t.test('nobody is let past one who waits, or a large response would wait for ever', async (t) => {
  const gate = createSendGate(100);
  const called: string[] = [];
  const leave = gate.enter(60, () => undefined);
  const large = (): void => {
    called.push('large');
    t.ok(gate.enter(80, large));
  };
  const small = (): void => {
    called.push('small');
    t.ok(gate.enter(20, small));
  };
  t.equal(gate.enter(80, large), undefined);
  t.equal(gate.enter(20, small), undefined, 'although there would be room');
  t.equal(gate.enter(80, large), undefined, 'who asks again keeps its place');
  leave?.();
  t.same(called, ['large', 'small']);
});

t.test('a response larger than all the room is let through when it is alone', async (t) => {
  const gate = createSendGate(100);
  let called = 0;
  const leave = gate.enter(1_000, () => undefined);
  t.ok(leave);
  t.equal(
    gate.enter(1, () => {
      called += 1;
    }),
    undefined,
  );
  leave?.();
  t.equal(called, 1);
});

t.test('who waits and leaves is not called', async (t) => {
  const gate = createSendGate(1);
  const leave = gate.enter(1, () => undefined);
  const retry = (): void => void t.fail('called');
  gate.enter(1, retry);
  gate.leave(retry);
  leave?.();
  t.ok(gate.enter(1, retry));
});
