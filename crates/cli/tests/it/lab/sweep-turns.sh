# In a guest: a whole sweep, and knobs that this kernel lacks.
knobs >before
(sweep out >said 2>&1)
knobs >after
status=0
assay sweep hackbench --knob base_slice_ns=1ms,10ms >lacking 2>&1 || status=$?
echo $status >lacking-status
