// The parts of ECharts that the dashboard uses, as window.echarts.
export * from "echarts/core";
import { use } from "echarts/core";
import { BarChart, HeatmapChart, LineChart } from "echarts/charts";
import {
  AriaComponent, BrushComponent, DatasetComponent, DataZoomComponent, DataZoomInsideComponent, GridComponent, LegendComponent,
  MarkAreaComponent, MarkLineComponent, ToolboxComponent, TooltipComponent, VisualMapComponent,
} from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

use([
  BarChart, HeatmapChart, LineChart, AriaComponent, BrushComponent, DatasetComponent, DataZoomComponent, DataZoomInsideComponent,
  GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, ToolboxComponent, TooltipComponent, VisualMapComponent,
  CanvasRenderer, SVGRenderer,
]);
