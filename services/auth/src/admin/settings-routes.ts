import type { StartReport } from '@tollgate/kit/start-report';
import type { AddRoutes } from '../http/api.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { AdminContext } from './users.ts';

interface SettingsParts {
  readonly report: Pick<StartReport, 'get'>;
}

/** `/admin/settings` */
export const addSettingsRoutes: AddRoutes<AdminContext & SettingsParts> = (api, context) => {
  api.get('/admin/settings', async (request, reply) => {
    await authenticateAdmin(request, context);
    return reply.send(context.report.get());
  });
};
