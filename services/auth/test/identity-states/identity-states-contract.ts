import { randomUUID } from 'node:crypto';
import t from 'tap';
import { auditEntry } from '../../src/db/audit-log.ts';
import type { Store } from '../../src/db/store.ts';
import type { IdentityStates } from '../../src/ext-authz/identity-cache.ts';
import { changeUser, startSession } from '../helpers/replica.ts';
import { insertUser, metadata, testStore } from '../helpers/test-store.ts';

const at = new Date(metadata.nowMs);

/** What all {@link IdentityStates} promise. */
export function identityStatesContract(kind: string, make: (store: Store) => IdentityStates): void {
  t.test(`${kind}: a user is as the store has them`, async (t) => {
    const store = await testStore(t);
    const ada = await insertUser(store, { email: 'ada@example.com' });
    const bannedUntil = new Date('2030-01-01T00:00:00Z');
    await changeUser(store, ada, {
      role: 'editor',
      appMetadata: { plan: 'pro' },
      bannedUntil,
      isAnonymous: true,
    });
    t.same(await make(store).find(ada.id, undefined), {
      role: 'editor',
      appMetadata: { provider: 'email', providers: ['email'], plan: 'pro' },
      isAnonymous: true,
      bannedUntil,
      session: undefined,
    });
  });

  t.test(`${kind}: a session is told of as long as it is there, and to nobody but its user`, async (t) => {
    const store = await testStore(t);
    const states = make(store);
    const ada = await insertUser(store, { email: 'ada@example.com' });
    const eve = await insertUser(store, { email: 'eve@example.com' });
    const sessionId = await startSession(store, ada);
    const [own, others, none] = await Promise.all([
      states.find(ada.id, sessionId),
      states.find(eve.id, sessionId),
      states.find(ada.id, randomUUID()),
    ]);
    t.same(own?.session, { createdAt: at, notAfter: undefined });
    t.equal(others?.role, 'authenticated');
    t.equal(others?.session, undefined);
    t.equal(none?.role, 'authenticated');
    t.equal(none?.session, undefined);
    await store.sessions.end(
      'global',
      { userId: ada.id, sessionId },
      auditEntry(ada, 'logout', { metadata }),
    );
    t.equal((await make(store).find(ada.id, sessionId))?.session, undefined);
  });

  t.test(`${kind}: there is no user who was deleted, for good or not, or never was`, async (t) => {
    const store = await testStore(t);
    const states = make(store);
    const gone = await insertUser(store, { email: 'gone@example.com' });
    await store.users.delete(gone.id, auditEntry(gone, 'user_deleted', { metadata }));
    const hidden = await insertUser(store, { email: 'hidden@example.com' });
    await store.users.softDelete(hidden.id, { at, audit: auditEntry(hidden, 'user_deleted', { metadata }) });
    t.equal(await states.find(gone.id, undefined), undefined);
    t.equal(await states.find(hidden.id, undefined), undefined);
    t.equal(await states.find(randomUUID(), randomUUID()), undefined);
  });

  t.test(`${kind}: ids that are none name nobody, and disturb nobody else's question`, async (t) => {
    const store = await testStore(t);
    const states = make(store);
    const ada = await insertUser(store, { email: 'ada@example.com' });
    const sessionId = await startSession(store, ada);
    const [nobody, noSession, shouted] = await Promise.all([
      states.find("' or true --", undefined),
      states.find(ada.id, 'no session'),
      states.find(ada.id.toUpperCase(), sessionId.toUpperCase()),
    ]);
    t.equal(nobody, undefined);
    t.match(noSession, { role: 'authenticated', session: undefined });
    t.match(shouted, { role: 'authenticated', session: { createdAt: at } });
  });
}
