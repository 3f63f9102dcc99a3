import { LabIcon } from '@jupyterlab/ui-components';

export const gpuIcon = new LabIcon({
  name: 'jupyter-paddle-gpu:gpu',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
    <path class="jp-icon3 jp-icon-selectable" fill="#616161" fill-rule="evenodd"
      d="M3 5h17a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1h-7v2h-2v-2H9v2H7v-2H5v3H3zm9 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0 2.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.600z"/>
  </svg>`
});
