import type { Area } from '../../http/routes.ts';
import { exportEntries, exportFormats } from './export.ts';
import { viewAudit } from './list.ts';

/** Who did what. */
export const auditArea: Area = {
  name: 'audit',
  title: 'Audit log',
  path: '/audit',
  group: 'Operation',
  permission: 'audit',
  pages: [{ path: '/audit', view: viewAudit }],
  actions: [],
  downloads: Object.values(exportFormats).map((format) => ({
    path: format.path,
    permission: 'audit' as const,
    open: (visit) => exportEntries(visit, format),
  })),
};
