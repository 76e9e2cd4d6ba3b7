// Limits on the page of a user, where rate limit services fail or have more than a page shows.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { Visit } from '../../src/http/visit.ts';
import { viewLimits } from '../../src/pages/users/limits.ts';
import type { User } from '../../src/pages/users/user.ts';
import { Outages } from '../../src/services/outages.ts';
import { SessionClients } from '../../src/services/session-clients.ts';

const user = { id: 'b0b', role: 'authenticated', app_metadata: {} } as User;

interface Answers {
  readonly limits: object;
  readonly refusals?: object;
  /** Undefined: the store fails. */
  readonly peeks?: object;
}

const answers: { current: Answers } = { current: { limits: {} } };

t.test('the limits of a user', async (t) => {
  const limiter = createServer((request, response) => {
    const { limits, refusals = { refusals: [] }, peeks } = answers.current;
    const path = request.url?.split('?')[0];
    const body = path === '/v1/limits' ? limits : path === '/v1/refusals' ? refusals : peeks;
    const failure = { code: 'store_unavailable', message: 'the store does not answer' };
    response.writeHead(body === undefined ? 503 : 200, { 'content-type': 'application/json' });
    request.resume().on('end', () => response.end(JSON.stringify(body ?? failure)));
  });
  limiter.listen(0, '127.0.0.1');
  t.teardown(() => limiter.close());
  await once(limiter, 'listening');
  const url = `http://127.0.0.1:${(limiter.address() as AddressInfo).port}`;
  const settings = {
    authUrl: '',
    authReplicaUrls: [],
    xdsUrl: '',
    xdsToken: '',
    requestTimeoutMs: 5000,
    limiterUrls: [url],
  };
  const show = async (current: Answers): Promise<string> => {
    answers.current = current;
    const outages = new Outages(Date.now);
    const services = new SessionClients({ settings, outages, token: async () => 'of-ada' });
    // A visit without a session and a request: the limits of a user need neither.
    const visit = { can: () => true, context: { settings }, services, nowMs: Date.now(), url: new URL(url) };
    return String(await viewLimits(visit as unknown as Visit, user));
  };
  const limits = { limits: [{ domain: 'users', path: 'users.user_id' }] };
  const none = /No limit by user_id counts this user/;

  t.test('without a rule, no limit counts the user', async (t) => {
    const text = await show({ limits: { limits: [] } });
    t.match(text, none);
    t.notMatch(text, 'class="problem"');
  });

  t.test('counters that cannot be read are a problem, and not no limit', async (t) => {
    const text = await show({ limits });
    t.match(text, 'the store does not answer (store_unavailable)');
    t.match(text, 'Not all limits of this user could be read');
    t.notMatch(text, none);
  });

  t.test('a list that is cut says so', async (t) => {
    const peeks = { peeks: [{ descriptors: [] }] };
    const ofRules = await show({ limits: { ...limits, next: 'users.user_id' }, peeks });
    t.match(ofRules, 'Only the first 100 rules with user_id were read');
    t.notMatch(ofRules, none);
    const refusals = Array.from({ length: 60 }, (_, index) => ({
      domain: 'users',
      entries: [
        { key: 'user_id', value: user.id },
        { key: 'path', value: `/${index}` },
      ],
    }));
    const ofCounters = await show({ limits, refusals: { refusals }, peeks });
    t.match(ofCounters, 'Only the first 50 of 61 counters were read');
    t.notMatch(ofCounters, none);
  });

  t.test('a service that does not answer is shown once', async (t) => {
    limiter.close();
    limiter.closeAllConnections();
    const text = await show({ limits });
    t.match(text, 'The rate limit service does not answer');
    t.equal(text.split('class="problem"').length, 2);
    t.notMatch(text, none);
  });
});
