import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import t from 'tap';
import { diagnosticsChannels, diagnosticsHooks } from '../../src/node.ts';

t.test('events are published on their channel while it has subscribers', (t) => {
  const hooks = diagnosticsHooks();
  const received: unknown[] = [];
  const listener = (event: unknown) => void received.push(event);
  hooks.onRevoke({ hint: 'access_token' });
  subscribe(diagnosticsChannels.onRevoke, listener);
  t.teardown(() => unsubscribe(diagnosticsChannels.onRevoke, listener));
  hooks.onRevoke({ hint: 'refresh_token' });
  t.same(received, [{ hint: 'refresh_token' }]);
  t.end();
});
