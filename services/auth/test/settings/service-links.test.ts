import t from 'tap';
import { withoutServiceLinks } from '../../src/config/warnings.ts';

t.test('variables that Kubernetes makes of Context are left out, settings stay', (t) => {
  const settings = { PORT: '9999', GOTRUE_API_PORT: '9999', SVC_SITE_URL: 'x', DB_SERVICE_HOST: '10.0.0.2' };
  const links = {
    GOTRUE_SERVICE_HOST: '10.0.0.1',
    GOTRUE_SERVICE_PORT: '9999',
    GOTRUE_SERVICE_PORT_HTTP: '9999',
    GOTRUE_PORT: 'tcp://10.0.0.1:9999',
    GOTRUE_PORT_9999_TCP: 'tcp://10.0.0.1:9999',
    GOTRUE_PORT_9999_TCP_PROTO: 'tcp',
    GOTRUE_PORT_9999_TCP_PORT: '9999',
    GOTRUE_PORT_9999_TCP_ADDR: '10.0.0.1',
    SVC_SHOP_SERVICE_HOST: '10.0.0.3',
    SVC_SHOP_SERVICE_PORT: '80',
    SVC_SHOP_PORT: 'tcp://10.0.0.3:80',
  };
  t.same(withoutServiceLinks({ ...settings, ...links }), settings);
  t.same(withoutServiceLinks({ GOTRUE_PORT: '9999', GOTRUE_SERVICE_HOST: 'x' }), { GOTRUE_PORT: '9999' });
  t.same(withoutServiceLinks({ GOTRUE_PORT: '9999' }), { GOTRUE_PORT: '9999' });
  t.end();
});
