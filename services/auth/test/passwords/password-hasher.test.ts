import { hash as bcryptHash } from '@node-rs/bcrypt';
import t from 'tap';
import { createWorkQueue, QueueFull } from '../../src/messages/background.ts';
import { createPasswordHasher } from '../../src/passwords/hasher.ts';

t.test('a password belongs to its hash and to no other', async (t) => {
  const hasher = createPasswordHasher({}, 1);
  const hash = await hasher.hash('correct horse');
  t.match(hash, /^\$argon2id\$/);
  t.ok(hasher.isCurrent(hash));
  t.equal(await hasher.verify('correct horse', hash), true);
  t.equal(await hasher.verify('wrong horse', hash), false);
  t.equal(await hasher.verifyNobody('correct horse'), false);
});

t.test('hashes of other servers are verified and to be replaced', async (t) => {
  const hasher = createPasswordHasher({}, 1);
  const bcrypt = await bcryptHash('correct horse', { cost: 4 });
  t.equal(await hasher.verify('correct horse', bcrypt), true);
  t.equal(await hasher.verify('wrong horse', bcrypt), false);
  t.notOk(hasher.isCurrent(bcrypt));
});

t.test('what is no hash belongs to no password', async (t) => {
  const hasher = createPasswordHasher({}, 1);
  for (const text of ['', 'correct horse', '$argon2id$v=19$m=19456', '$2a$10$short'])
    t.equal(await hasher.verify('correct horse', text), false, text);
});

t.test('so many run at a time, so many wait, and the next is refused at once', async (t) => {
  const queue = createWorkQueue({ concurrency: 2, maxWaiting: 1 });
  const gates = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const ended: number[] = [];
  const runs = gates.map(({ promise }, index) =>
    queue.run(async () => {
      await promise;
      ended.push(index);
    }),
  );
  t.equal(queue.waiting(), 1);
  await t.rejects(
    queue.run(async () => 4),
    QueueFull,
  );
  for (const [index, gate] of gates.entries()) {
    gate.resolve();
    await runs[index];
  }
  t.same(ended, [0, 1, 2]);
  t.equal(await queue.run(async () => 5), 5);
});
